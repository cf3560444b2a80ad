/** `rondo show`: shows a definition with its digest, versions and callers, or a turn with all its calls. */

import { LoopError } from '../../../base/errors.js';
import { ownProperty } from '../../../base/own-property.js';
import { shortVersion } from '../../../base/short-version.js';
import { calleesOf, type RegisteredLoop, type Registry } from '../../../loops/registry.js';
import { loadSettings, type ProjectSettings } from '../../compose.js';
import { findLoop, loopNotFoundError, warnBadFiles, warnIgnoredKeys } from '../definitions.js';
import { findTurn } from '../find-turn.js';
import { openHostForReading } from '../open-host.js';
import { pricingOf } from '../pricing.js';
import { CallDetailRows, SHORTENED_HINT } from '../render-details.js';
import { statusDocument, statusLines } from '../render-status.js';
import { sanitizeText } from '../terminal-text.js';
import { exitCodes, type Invocation, textOption, type VerbHandler } from '../verb.js';
import { inspectTurn } from './status.js';

/** Handles `rondo show`. */
export const show: VerbHandler = async (invocation) => {
  const { args, options, settingsInput, terminal, json } = invocation;
  const settings = await loadSettings(settingsInput);
  const reference = String(args[0]);
  const [version, model] = [textOption(options.version), textOption(options.model)];
  const { wanted, definitions } = await findLoop(reference, version, settings, model);
  const { registry, badFiles } = definitions;
  const registered = registry.find(wanted.id, wanted.version);
  if (registered === undefined) {
    const mayBeTurn = version === undefined && options.mermaid !== true;
    if (mayBeTurn && (await showTurn(reference, settings, invocation))) return exitCodes.ok;
    warnBadFiles(badFiles, terminal);
    throw loopNotFoundError(reference, wanted, definitions);
  }
  const description = describeLoop(registered, registry);
  if (options.mermaid === true) {
    const { mermaidOf } = await import('../../../loops/plan/mermaid/mermaid.js');
    const diagram = mermaidOf(registered.definition);
    await (json ? terminal.printJson({ mermaid: diagram }) : terminal.print(diagram));
  } else if (json) await terminal.printJson(description);
  else await terminal.print(renderLoop(description));
  warnIgnoredKeys(
    definitions.warnings.filter(({ file }) => file === registered.origin.file),
    terminal,
  );
  return exitCodes.ok;
};

/** The number of rows of one value, unless everything is shown. */
const MAX_VALUE_ROWS = 6;

/** Shows a turn with its calls. Returns false if there is no such turn. */
async function showTurn(
  reference: string,
  settings: ProjectSettings,
  { options, terminal, json }: Invocation,
): Promise<boolean> {
  const { host, close } = await openHostForReading(settings, terminal);
  try {
    const turn = await findTurn(host, reference).catch((thrown: unknown) => {
      const isUnknown = thrown instanceof LoopError && thrown.code === 'TURN_NOT_FOUND';
      // The error for a hosted loop says where its turns are.
      if (isUnknown && ownProperty(thrown.data, 'hostedLoop') === undefined) return undefined;
      throw thrown;
    });
    if (turn === undefined) return false;
    const inspected = await inspectTurn(host, turn);
    if (json) {
      await terminal.printJson({ ...statusDocument(inspected), calls: inspected.calls });
      return true;
    }
    const { renderTree } = await import('../render-tree.js');
    const display = terminal.displayOf();
    const full = options.full === true;
    const maxRows = full ? Number.POSITIVE_INFINITY : MAX_VALUE_ROWS;
    const rows = new CallDetailRows(inspected.calls, { maxRows, showsUsage: true });
    const details = (callId: string, columns: number) => rows.rowsOf(callId, columns);
    const trace = inspected.calls.length === 0 ? [] : await host.archive.trace(turn.turnId);
    const tree = renderTree(trace, { ...display, price: pricingOf(settings.config), details, full });
    const lines = statusLines(inspected, { width: display.width, now: Date.now(), full, cwd: settings.cwd });
    await terminal.print(`${[...lines, '', tree].join('\n')}\n`);
    if (rows.hasShortened) terminal.printToStderr(SHORTENED_HINT);
    return true;
  } finally {
    await close();
  }
}

function describeLoop({ definition, digest, origin: { file }, definedLoop }: RegisteredLoop, registry: Registry) {
  const { id } = definition;
  const all = registry.list().map((registered) => registered.definition);
  const calls = calleesOf(definition.composite).map(({ loopId }) => loopId);
  return {
    definition,
    digest,
    ...(file !== undefined && { file }),
    code: definedLoop !== undefined,
    versions: all.filter((other) => other.id === id).map(({ version }) => version),
    calls: [...new Set(calls)],
    calledBy: all
      .filter(({ composite }) => calleesOf(composite).some(({ loopId }) => loopId === id))
      .map((other) => `${other.id}@${other.version}`),
  };
}

function renderLoop(loop: ReturnType<typeof describeLoop>): string {
  const { definition, digest, file, code, versions, calls, calledBy } = loop;
  const { id, version, kind, name, description, inputSchema, outputSchema } = definition;
  const facts = [
    ['file', file ?? '-'],
    ['digest', digest],
    ['versions', versions.map(shortVersion).join(', ')],
    ['calls', calls.join(', ') || '-'],
    ['called by', calledBy.map(shortVersion).join(', ') || '-'],
  ];
  const body = { prompt: definition.prompt, composite: definition.composite, tool: definition.tool };
  const parts = [
    ['input', inputSchema],
    ['output', outputSchema],
    ...(code ? [] : Object.entries(body).filter(([, part]) => part !== undefined)),
    ...(definition.backend === undefined ? [] : [['backend', definition.backend] as const]),
    ...(definition.policy === undefined ? [] : [['policy', definition.policy] as const]),
  ];
  const lines = [
    sanitizeText(`${id} ${shortVersion(version)}  ${code ? `${kind}, in code` : kind}`),
    sanitizeText(description ?? name),
    '',
    ...facts.map(([label = '', value]) => `${label.padEnd(10)} ${sanitizeText(value ?? '')}`),
    ...parts.flatMap(([label, value]) => [
      '',
      `${String(label)}:`,
      sanitizeText(JSON.stringify(value, null, 2), { lines: true, max: 100_000 }),
    ]),
  ];
  return `${lines.join('\n')}\n`;
}
