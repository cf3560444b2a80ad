/** `show`: one definition, with what it is known by and who calls it. */
import { callsOf, type Registered, type Registry } from '../../../loops/registry.js';
import { settingsOf } from '../../compose.js';
import { findLoop, notFound, warnBad, warnMistakes } from '../definitions.js';
import { plain } from '../paint.js';
import { type Act, exit, textOf } from '../verb.js';

export const show: Act = async ({ args, options, asked, terminal, json }) => {
  const settings = await settingsOf(asked);
  const given = String(args[0]);
  const { wanted, definitions } = await findLoop(given, textOf(options.version), settings);
  const { registry, bad } = definitions;
  const found = registry.find(wanted.id, wanted.version);
  if (found === undefined) {
    warnBad(bad, terminal);
    throw notFound(given, wanted, definitions);
  }
  const shown = shownOf(found, registry);
  if (json) await terminal.json(shown);
  else await terminal.print(forPeople(shown));
  warnMistakes(
    definitions.warnings.filter(({ file }) => file === found.origin.file),
    terminal,
  );
  return exit.ok;
};

function shownOf({ definition, digest, origin: { file }, code }: Registered, registry: Registry) {
  const { id } = definition;
  const all = registry.list().map((registered) => registered.definition);
  const calls = callsOf(definition.composite).map(({ loopId }) => loopId);
  return {
    definition,
    digest,
    ...(file !== undefined && { file }),
    code: code !== undefined,
    versions: all.filter((other) => other.id === id).map(({ version }) => version),
    calls: [...new Set(calls)],
    calledBy: all
      .filter(({ composite }) => callsOf(composite).some(({ loopId }) => loopId === id))
      .map((other) => `${other.id}@${other.version}`),
  };
}

function forPeople(shown: ReturnType<typeof shownOf>): string {
  const { definition, digest, file, code, versions, calls, calledBy } = shown;
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
    plain(`${id} ${version}  ${code ? `${kind}, in code` : kind}`),
    plain(description ?? name),
    '',
    ...facts.map(([label = '', value]) => `${label.padEnd(10)} ${plain(value ?? '')}`),
    ...parts.flatMap(([label, value]) => [
      '',
      `${String(label)}:`,
      plain(JSON.stringify(value, null, 2), { lines: true, max: 100_000 }),
    ]),
  ];
  return `${lines.join('\n')}\n`;
}
