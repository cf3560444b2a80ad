// Command lines that cover every verb that ends by itself, with their exit codes.

import type { TurnResult } from '../../src/protocol/index.js';
import { Project, tool } from '../support/cli-project.js';

/** A tool that requires an approval. */
const asking = { ...tool('asking', 'echo'), policy: { approval: 'ask' } };
/** The loops of the command lines. */
const loops = { echo: tool('echo', 'echo'), fail: tool('fail', 'fail'), asking };

/** A command line of words without spaces, and its exit code when its output is read. */
export type CommandLine = readonly [line: string, code: number];

/** The command lines of the verbs of receipts. */
const PROOF_LINES: readonly CommandLine[] = [
  ['receipts', 0],
  ['verify --all', 0],
  ['verify', 64],
  ['export --session talk', 0],
  ['export --as paper', 64],
  ['keys', 0],
  ['keys burn', 64],
  ['close none-such', 1],
];

/** The command lines of hosted loops. */
const HOST_LINES: readonly CommandLine[] = [
  ['host start hourly.json', 0],
  ['host start none.json', 64],
  ['host status', 0],
  ['host status none-such', 1],
  ['host pause hourly', 0],
  ['host stop hourly', 0],
  ['host list', 64],
];

/** Creates a project with the loops and files of the command lines. */
export function projectWithEveryLoop(): Project {
  const project = new Project(loops);
  const agent = {
    ...{ id: 'agent', name: 'agent', version: '1.0.0', kind: 'composite', inputSchema: {}, outputSchema: {} },
    composite: { agent: { backend: { id: 'mock' }, tools: [] } },
  };
  project.write('loops/agent.json', agent);
  project.write('taken/README.md', 'mine');
  const grant = { allowedTools: ['echo'], limits: {} };
  project.write('hourly.json', { id: 'hourly', loop: 'echo', input: {}, grant, turn: {}, stop: { maxTurns: 3 } });
  const cases = [{ name: 'echo', loop: 'echo', expect: { status: 'ok' } }];
  project.write('cases/harness.json', { cases });
  return project;
}

/** Runs the turns that the command lines name, and returns the command lines. */
export async function commandLines(project: Project): Promise<readonly CommandLine[]> {
  const { turnId } = await project.json<TurnResult>(['run', 'echo', '--session', 'done']);
  const failed = await project.json<TurnResult>(['run', 'fail', '--session', 'failed']);
  await project.run(['chat', 'agent', '--session', 'talk'], { input: 'Hello\n' });
  return [
    ['init taken', 1],
    ['completion bash', 0],
    ['run echo', 0],
    ['run fail', 1],
    ['run asking', 2],
    ['run unknown', 1],
    ['run echo --input [', 64],
    ['chat agent', 0],
    ['chat echo', 64],
    [`resume ${turnId}`, 0],
    [`resume ${failed.turnId}`, 1],
    ['resume none-such', 1],
    [`cancel ${turnId}`, 1],
    ['list', 0],
    ['show echo', 0],
    ['show unknown', 1],
    ['check', 0],
    ['plan convert loops/echo.json', 0],
    ['plan convert loops/none.json', 64],
    ['check loops/none.json', 1],
    ['runs', 0],
    [`status ${turnId}`, 0],
    ['status none-such', 1],
    [`trace ${turnId}`, 0],
    [`trace ${failed.turnId}`, 0],
    ['events talk', 0],
    ['events none-such', 1],
    [`diff ${turnId} ${failed.turnId}`, 0],
    [`replay ${turnId}`, 0],
    ['retry none-such', 1],
    ['fork talk --at 2', 0],
    ['fork talk --at 99', 1],
    ['fork talk', 64],
    ['signal none-such paid', 1],
    ['approvals', 0],
    ['approve none-such', 1],
    ['deny none-such', 1],
    ['resolve none-such --fail', 1],
    ...HOST_LINES,
    ['conformance --only DEF-01', 0],
    ['harness cases', 0],
    ['harness none', 64],
    ['doctor', 0],
    ['doctor --data /dev/null/x', 1],
    ['remove none-such --yes', 1],
    ...PROOF_LINES,
    ['trust', 0],
  ];
}

/** Returns one of the command lines for each verb: one that succeeds, if there is one. */
export function oneForEachVerb(lines: readonly CommandLine[]): readonly CommandLine[] {
  const chosen = new Map<string, CommandLine>();
  for (const line of lines) {
    const verb = verbOf(line);
    const known = chosen.get(verb);
    if (known === undefined || (known[1] !== 0 && line[1] === 0)) chosen.set(verb, line);
  }
  return [...chosen.values()];
}

/** Returns the verb of a command line. */
export function verbOf([line]: CommandLine): string {
  return line.split(' ', 1)[0] ?? '';
}
