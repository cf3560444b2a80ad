// Projects whose store was changed by something else than Rondo.

import { openDriver } from '../../src/adapters/sqlite/index.js';
import { Project, tool } from '../support/cli-project.js';

/** What `rondo doctor --json` reports about the store. */
export interface DoctorReport {
  readonly ok: boolean;
  readonly store: {
    readonly checked: string;
    readonly sessions?: number;
    readonly damage: readonly { kind: string; session?: string; seq?: number }[];
    readonly affected: readonly string[];
    readonly accepted: readonly { kind: string; closed: { by: string; as: string; reason?: string } }[];
    readonly removed: readonly { session: string; by: string }[];
  };
}

export const DB = '.rondo/journal.db';

/** Creates a project with one turn in each of these sessions. */
export async function projectWithTurns(...sessions: readonly string[]): Promise<Project> {
  const project = new Project({ echo: tool('echo', 'echo'), fail: tool('fail', 'fail') });
  for (const session of sessions)
    await project.run(['run', 'echo', '--session', session, '--input', `{"in": "${session}"}`]);
  return project;
}

/** Changes the records of a session in the database, bypassing the store. */
export function damage(project: Project, session: string): void {
  const raw = openDriver(project.path(DB));
  raw.exec(`UPDATE records SET body = replace(body, '{"in":"${session}"}', '{"in":"other"}')`);
  raw.close();
}
