/** `rondo show`: shows a definition with its digest, versions and callers. */
import { calleesOf, type RegisteredLoop, type Registry } from '../../../loops/registry.js';
import { loadSettings } from '../../compose.js';
import { findLoop, loopNotFoundError, warnBadFiles, warnIgnoredKeys } from '../definitions.js';
import { sanitizeText } from '../terminal-text.js';
import { exitCodes, textOption, type VerbHandler } from '../verb.js';

/** Handles `rondo show`. */
export const show: VerbHandler = async ({ args, options, settingsInput, terminal, json }) => {
  const settings = await loadSettings(settingsInput);
  const reference = String(args[0]);
  const { wanted, definitions } = await findLoop(reference, textOption(options.version), settings);
  const { registry, badFiles } = definitions;
  const registered = registry.find(wanted.id, wanted.version);
  if (registered === undefined) {
    warnBadFiles(badFiles, terminal);
    throw loopNotFoundError(reference, wanted, definitions);
  }
  const description = describeLoop(registered, registry);
  if (json) await terminal.printJson(description);
  else await terminal.print(renderLoop(description));
  warnIgnoredKeys(
    definitions.warnings.filter(({ file }) => file === registered.origin.file),
    terminal,
  );
  return exitCodes.ok;
};

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
    ['versions', versions.join(', ')],
    ['calls', calls.join(', ') || '-'],
    ['called by', calledBy.join(', ') || '-'],
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
    sanitizeText(`${id} ${version}  ${code ? `${kind}, in code` : kind}`),
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
