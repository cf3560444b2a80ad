/** Converts a definition file between TOML and JSON, and checks that the converted text has the same definition. */
import { LoopError } from '../../base/errors.js';
import { failedDefinitionError } from '../../loops/failed-definition.js';
import type { Json } from '../../protocol/json.js';
import type { LoopDef } from '../../protocol/loop.js';
import { trustPredicateOf } from '../authority.js';
import type { ProjectSettings } from './project-settings.js';

/** The formats of definition files. */
export type DefinitionFormat = 'toml' | 'json';

/** Returns the definition of a document. Throws DEFINITION_INVALID with its problems if it is invalid. */
export async function readDefinitionFile(file: string, { authority }: ProjectSettings): Promise<LoopDef> {
  const [{ loadDefinitionFile }, { documentParser: parser }] = await Promise.all([
    import('../../adapters/files/load.js'),
    import('../../loops/plan/workflow-document.js'),
  ]);
  const { definitions, badFiles } = await loadDefinitionFile(file, { parser, trusted: trustPredicateOf(authority) });
  const own = definitions.findLast((item) => item.file === file);
  const problems = badFiles.filter((problem) => problem.file === file);
  if (own !== undefined && 'definition' in own && problems.length === 0) return own.definition;
  throw failedDefinitionError({ id: problems[0]?.loopId ?? file, problems });
}

/** Returns a definition as text in a format. Throws DEFINITION_INVALID if TOML cannot express it. */
export async function renderDefinition(definition: LoopDef, format: DefinitionFormat): Promise<string> {
  if (format === 'json') return `${JSON.stringify(definition, null, 2)}\n`;
  const [{ stringify }, { parseDefinitionText }, { documentParser }, form, { canonicalJson }] = await Promise.all([
    import('smol-toml'),
    import('../../adapters/files/parse-definition.js'),
    import('../../loops/plan/workflow-document.js'),
    import('../../loops/plan/workflow-form.js'),
    import('../../json/canonical.js'),
  ]);
  const document = form.workflowForm(definition);
  form.assertExpressibleInToml(document, definition.id);
  const text = stringify(document);
  const parsed = parseDefinitionText('converted.toml', text, documentParser);
  const canonical = (value: LoopDef): string => canonicalJson(value as unknown as Json);
  if ('definition' in parsed && canonical(parsed.definition) === canonical(definition)) return text;
  const message = `"${definition.id}" cannot be written as TOML without a change; keep this definition as JSON.`;
  throw new LoopError('DEFINITION_INVALID', message, { loopId: definition.id });
}
