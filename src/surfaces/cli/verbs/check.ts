/** `check`: validates definitions without running them, and names the turns in flight that a change would break. */
import { resolve } from 'node:path';
import type { InFlight } from '../../../host/host.js';
import {
  type BadFile,
  type Definitions,
  loadLoops,
  type ProjectSettings,
  settingsOf,
  unknownBackends,
} from '../../compose.js';
import { describeBad } from '../definitions.js';
import { openHost } from '../host.js';
import { type Paint, paint, plain } from '../paint.js';
import type { Terminal } from '../terminal.js';
import { type Act, exit } from '../verb.js';

interface Checked {
  readonly file: string;
  readonly ok: boolean;
  readonly errors: readonly Omit<BadFile, 'file'>[];
  readonly warnings: readonly Omit<BadFile, 'file'>[];
}

/** The whole of what is told. */
interface Findings {
  readonly ok: boolean;
  readonly files: readonly Checked[];
  readonly dangling: readonly { readonly loop: string; readonly stepIndex: number; readonly missing: string }[];
  readonly inFlight: readonly Flying[];
}

interface Flying {
  readonly turnId: string;
  readonly loop: string;
  readonly changed: InFlight['changed'];
  readonly breaks: boolean;
}

export const check: Act = async ({ args, asked, terminal, json }) => {
  const settings = await settingsOf(asked);
  const named = ((args[0] ?? []) as readonly string[]).map((file) => resolve(settings.cwd, file));
  const definitions = await loadLoops(settings, named);
  const lost = await unknownBackends(settings, definitions);
  const files = filesOf({ ...definitions, bad: [...definitions.bad, ...lost] }, named);
  const own = new Set(files.map(({ file }) => file));
  const dangling = danglingIn(definitions, own);
  const inFlight = await inFlightOf(settings, definitions, terminal);
  const ok = files.every((file) => file.ok) && dangling.length === 0 && !inFlight.some(({ breaks }) => breaks);
  const findings = { ok, files, dangling, inFlight };
  if (json) await terminal.json(findings);
  else await terminal.print(forPeople(findings, paint(terminal.look().color)));
  return ok ? exit.ok : exit.failed;
};

function filesOf({ found, bad, warnings: odd }: Definitions, named: readonly string[]): readonly Checked[] {
  const all = [...found, ...bad].map(({ file }) => file);
  const files = named.length > 0 ? named : [...new Set(all)].sort();
  return files.map((file) => {
    const errors = bad.filter((item) => item.file === file).map(({ file: _, ...rest }) => rest);
    const warnings = odd.filter((item) => item.file === file).map(({ file: _, mistake: __, ...rest }) => rest);
    return { file, ok: errors.length === 0, errors, warnings };
  });
}

/** Steps that lead nowhere, of the loops that these files hold. */
function danglingIn({ registry, found }: Definitions, files: ReadonlySet<string>): Findings['dangling'] {
  const ours = new Set(
    found
      .filter(({ file }) => files.has(file))
      .map(({ registered: { definition } }) => `${definition.id}@${definition.version}`),
  );
  return registry.dangling().filter(({ loop }) => ours.has(loop));
}

async function inFlightOf(
  settings: ProjectSettings,
  definitions: Definitions,
  terminal: Terminal,
): Promise<readonly Flying[]> {
  const { host, close } = await openHost(settings, { definitions, make: false }, terminal);
  try {
    const flying = await host.inFlight();
    return flying.map(({ turn: { turnId, loopId, loopVersion }, changed }) => ({
      turnId,
      loop: `${loopId}@${loopVersion}`,
      changed,
      breaks: changed.some(({ breaks }) => breaks),
    }));
  } finally {
    await close();
  }
}

function forPeople({ ok, files, dangling, inFlight }: Findings, colors: Paint): string {
  const lines = files.flatMap(({ file, ok: good, errors, warnings }) => [
    `${good ? colors.green('ok') : colors.red('bad')}  ${plain(file)}`,
    ...errors.map((item) => `     ${describeBad({ file, ...item })}`),
    ...warnings.map((item) => `     ${colors.yellow('warning')} ${describeBad({ file, ...item })}`),
  ]);
  const lost = dangling.map(
    ({ loop, stepIndex, missing }) =>
      `${colors.red('bad')}  ${loop}: step ${stepIndex} calls "${plain(missing)}", which is not here`,
  );
  const broken = inFlight.flatMap(({ turnId, loop, changed }) =>
    changed.map(({ loop: part, now, breaks, why = '' }) => {
      const mark = breaks ? colors.red('bad') : colors.yellow('warning');
      return `${mark}  turn ${turnId} of ${loop} is in flight, and ${part} is ${now}${breaks ? `: ${plain(why)}` : ''}`;
    }),
  );
  const none = files.length === 0 ? ['There is nothing to check.'] : [];
  const end = ok ? colors.green('All is well.') : colors.red('Something is wrong.');
  return `${[...lines, ...lost, ...broken, ...none, end].join('\n')}\n`;
}
