/** `check`: validates definitions without running them, and names the turns in flight that a change would break. */
import { resolve } from 'node:path';
import type { InFlightTurn } from '../../../host/host.js';
import {
  type BadFile,
  type Definitions,
  findUnknownBackends,
  loadLoops,
  loadSettings,
  type ProjectSettings,
} from '../../compose.js';
import { describeBadFile } from '../definitions.js';
import { openHost } from '../open-host.js';
import type { Terminal } from '../terminal.js';
import { type Colors, createColors, sanitizeText } from '../terminal-text.js';
import { exitCodes, type VerbHandler } from '../verb.js';

interface CheckedFile {
  readonly file: string;
  readonly ok: boolean;
  readonly errors: readonly Omit<BadFile, 'file'>[];
  readonly warnings: readonly Omit<BadFile, 'file'>[];
}

/** The whole of what is told. */
interface CheckReport {
  readonly ok: boolean;
  readonly files: readonly CheckedFile[];
  readonly dangling: readonly { readonly loop: string; readonly stepIndex: number; readonly missing: string }[];
  readonly inFlight: readonly AffectedTurn[];
}

interface AffectedTurn {
  readonly turnId: string;
  readonly loop: string;
  readonly changed: InFlightTurn['changed'];
  readonly breaks: boolean;
}

export const check: VerbHandler = async ({ args, settingsInput, terminal, json }) => {
  const settings = await loadSettings(settingsInput);
  const named = ((args[0] ?? []) as readonly string[]).map((file) => resolve(settings.cwd, file));
  const definitions = await loadLoops(settings, named);
  const lost = await findUnknownBackends(settings, definitions);
  const files = checkedFilesOf({ ...definitions, badFiles: [...definitions.badFiles, ...lost] }, named);
  const own = new Set(files.map(({ file }) => file));
  const dangling = danglingStepsIn(definitions, own);
  const inFlight = await findInFlightTurns(settings, definitions, terminal);
  const ok = files.every((file) => file.ok) && dangling.length === 0 && !inFlight.some(({ breaks }) => breaks);
  const findings = { ok, files, dangling, inFlight };
  if (json) await terminal.printJson(findings);
  else await terminal.print(renderCheckReport(findings, createColors(terminal.displayOf().color)));
  return ok ? exitCodes.ok : exitCodes.failed;
};

function checkedFilesOf(
  { loops, badFiles, warnings: odd }: Definitions,
  named: readonly string[],
): readonly CheckedFile[] {
  const all = [...loops, ...badFiles].map(({ file }) => file);
  const files = named.length > 0 ? named : [...new Set(all)].sort();
  return files.map((file) => {
    const errors = badFiles.filter((item) => item.file === file).map(({ file: _, ...rest }) => rest);
    const warnings = odd.filter((item) => item.file === file).map(({ file: _, mistake: __, ...rest }) => rest);
    return { file, ok: errors.length === 0, errors, warnings };
  });
}

/** Steps that lead nowhere, of the loops that these files hold. */
function danglingStepsIn({ registry, loops }: Definitions, files: ReadonlySet<string>): CheckReport['dangling'] {
  const ours = new Set(
    loops
      .filter(({ file }) => files.has(file))
      .map(({ registered: { definition } }) => `${definition.id}@${definition.version}`),
  );
  return registry.missingReferences().filter(({ loop }) => ours.has(loop));
}

async function findInFlightTurns(
  settings: ProjectSettings,
  definitions: Definitions,
  terminal: Terminal,
): Promise<readonly AffectedTurn[]> {
  const { host, close } = await openHost(settings, { definitions, createIfMissing: false }, terminal);
  try {
    const flying = await host.inFlightTurns();
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

function renderCheckReport({ ok, files, dangling, inFlight }: CheckReport, colors: Colors): string {
  const lines = files.flatMap(({ file, ok: good, errors, warnings }) => [
    `${good ? colors.green('ok') : colors.red('bad')}  ${sanitizeText(file)}`,
    ...errors.map((item) => `     ${describeBadFile({ file, ...item })}`),
    ...warnings.map((item) => `     ${colors.yellow('warning')} ${describeBadFile({ file, ...item })}`),
  ]);
  const lost = dangling.map(
    ({ loop, stepIndex, missing }) =>
      `${colors.red('bad')}  ${loop}: step ${stepIndex} calls "${sanitizeText(missing)}", which is not here`,
  );
  const broken = inFlight.flatMap(({ turnId, loop, changed }) =>
    changed.map(({ loop: part, now, breaks, why = '' }) => {
      const mark = breaks ? colors.red('bad') : colors.yellow('warning');
      return `${mark}  turn ${turnId} of ${loop} is in flight, and ${part} is ${now}${breaks ? `: ${sanitizeText(why)}` : ''}`;
    }),
  );
  const none = files.length === 0 ? ['There is nothing to check.'] : [];
  const end = ok ? colors.green('All is well.') : colors.red('Something is wrong.');
  return `${[...lines, ...lost, ...broken, ...none, end].join('\n')}\n`;
}
