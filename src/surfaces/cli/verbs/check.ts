/**
 * `rondo check`: validates definitions and hosted loops without running them, and lists the turns in flight that a change would break.
 */

import { resolve } from 'node:path';
import { shortVersion } from '../../../base/short-version.js';
import type { InFlightTurn } from '../../../host/host.js';
import { unrunnableLoops } from '../../compose/unrunnable-loops.js';
import { type BadFile, type Definitions, loadLoops, loadSettings, type ProjectSettings } from '../../compose.js';
import { describeBadFile } from '../definitions.js';
import { openHost } from '../open-host.js';
import type { Terminal } from '../terminal.js';
import { type Colors, createColors, sanitizeText } from '../terminal-text.js';
import { exitCodes, textOption, type VerbHandler } from '../verb.js';

interface CheckedFile {
  readonly file: string;
  readonly ok: boolean;
  readonly errors: readonly Omit<BadFile, 'file'>[];
  readonly warnings: readonly Omit<BadFile, 'file'>[];
}

/** The JSON document of the verb. */
interface CheckReport {
  readonly ok: boolean;
  readonly files: readonly CheckedFile[];
  /** Modules that were not imported, because they define no loops. */
  readonly skipped: readonly Pick<BadFile, 'file' | 'reason'>[];
  readonly inFlight: readonly AffectedTurn[];
}

/** A turn in flight, with the loops in code that have changed since it started. */
interface AffectedTurn {
  readonly turnId: string;
  readonly loop: string;
  readonly changed: InFlightTurn['changed'];
  readonly build?: InFlightTurn['build'];
  readonly breaks: boolean;
}

/** Handles `rondo check`. */
export const check: VerbHandler = async ({ args, options, settingsInput, terminal, json }) => {
  const settings = await loadSettings(settingsInput);
  const paths = ((args[0] ?? []) as readonly string[]).map((file) => resolve(settings.cwd, file));
  const definitions = await loadLoops(settings, paths, { model: textOption(options.model) });
  const files = checkedFilesOf(definitions, await unrunnableLoops(definitions), paths);
  const inFlight = await findInFlightTurns(settings, definitions, terminal);
  const ok = files.every((file) => file.ok) && !inFlight.some(({ breaks }) => breaks);
  const report = { ok, files, skipped: definitions.skipped, inFlight };
  if (json) await terminal.printJson(report);
  else await terminal.print(renderCheckReport(report, createColors(terminal.displayOf().color)));
  return ok ? exitCodes.ok : exitCodes.failed;
};

function checkedFilesOf(
  { loops, badFiles, warnings: allWarnings, hosted }: Definitions,
  unrunnable: readonly BadFile[],
  paths: readonly string[],
): readonly CheckedFile[] {
  const loaded = [...loops, ...badFiles, ...hosted].map(({ file }) => file);
  const allBadFiles = [...badFiles, ...unrunnable, ...hosted.flatMap((item) => item.badFiles)];
  const files = paths.length > 0 ? paths : [...new Set(loaded)].sort();
  return files.map((file) => {
    const errors = allBadFiles
      .filter((item) => item.file === file)
      .map(({ file: _, loopId: __, ...rest }) => rest)
      .sort((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0));
    const warnings = allWarnings
      .filter((item) => item.file === file)
      .map(({ file: _, loopId: __, mistake: ___, ...rest }) => rest);
    return { file, ok: errors.length === 0, errors, warnings };
  });
}

async function findInFlightTurns(
  settings: ProjectSettings,
  definitions: Definitions,
  terminal: Terminal,
): Promise<readonly AffectedTurn[]> {
  const { host, close } = await openHost(settings, { definitions, createIfMissing: false }, terminal);
  try {
    const turns = await host.inFlightTurns();
    return turns.map(({ turn: { turnId, loopId, loopVersion }, changed, build }) => ({
      turnId,
      loop: `${loopId}@${loopVersion}`,
      changed,
      ...(build !== undefined && { build }),
      breaks: changed.some(({ breaks }) => breaks),
    }));
  } finally {
    await close();
  }
}

function renderCheckReport(report: CheckReport, colors: Colors): string {
  const { ok, files, skipped, inFlight } = report;
  const fileLines = files.flatMap(({ file, ok: isValid, errors, warnings }) => [
    `${isValid ? colors.green('ok') : colors.red('bad')}  ${sanitizeText(file)}`,
    ...errors.map((item) => `     ${describeBadFile({ file, ...item })}`),
    ...warnings.map((item) => `     ${colors.yellow('warning')} ${describeBadFile({ file, ...item })}`),
  ]);
  const skippedLines = skipped.map((item) => `${colors.dim('skip')}  ${describeBadFile(item)}`);
  const turnLines = inFlight.flatMap((turn) => linesOfTurn(turn, colors));
  const emptyLine = files.length === 0 ? ['There are no definitions to check.'] : [];
  const verdict = ok ? colors.green('No problems found.') : colors.red('Problems found.');
  return `${[...fileLines, ...skippedLines, ...turnLines, ...emptyLine, verdict].join('\n')}\n`;
}

function linesOfTurn({ turnId, loop, changed, build }: AffectedTurn, colors: Colors): readonly string[] {
  const where = `turn ${turnId} of ${shortVersion(loop)} is in flight`;
  const codeLines = changed.map(({ loop: part, now, parts, breaks, reason = '' }) => {
    const mark = breaks ? colors.red('bad') : colors.yellow('warning');
    const named = parts.length === 0 ? `${part} is ${now}` : `${part}: ${parts.join(', ')} changed`;
    return `${mark}  ${where}, and ${sanitizeText(named)}${breaks ? `: ${sanitizeText(reason)}` : ''}`;
  });
  if (build === undefined) return codeLines;
  const recorded = build.recorded === undefined ? 'without a build' : `under build ${build.recorded}`;
  const line = `${where}, started ${recorded}, and its approvals are requested again under build ${build.now}`;
  return [...codeLines, `${colors.yellow('warning')}  ${sanitizeText(line)}`];
}
