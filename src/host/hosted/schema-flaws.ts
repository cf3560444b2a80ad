/**
 * What a hosted loop reads, compared with the schemas of its loop and of its signals: the input that `next` makes, and the
 * outputs that stop it. Only what is certain is a flaw.
 */
import { compileJsonPath } from '../../json/path.js';
import { DefinitionIssues } from '../../loops/definition/shape.js';
import { inputIssues } from '../../loops/plan/analysis/accepted-input.js';
import { ANY, ReadableValues, tableOf } from '../../loops/plan/analysis/readable-values.js';
import { ReferenceCheck } from '../../loops/plan/analysis/references.js';
import type { RegisteredLoop } from '../../loops/registry.js';
import type { HostedLoopDocument } from '../../protocol/hosted-loop.js';
import type { Json, JsonObject } from '../../protocol/json.js';
import type { JsonSchema } from '../../protocol/loop.js';
import type { LoopFlaw } from './loop-flaws.js';

const TEXT: JsonSchema = { type: 'string' };

/** Returns the flaws of the paths and mappings of a hosted loop. `hasCode` is true if code makes its inputs. */
export function schemaFlawsOf(
  document: HostedLoopDocument,
  { definition: { inputSchema, outputSchema } }: RegisteredLoop,
  hasCode: boolean,
): readonly LoopFlaw[] {
  const issues = new DefinitionIssues();
  const check = new ReferenceCheck(issues, new Set());
  const { next, stop, loop } = document;
  const values = new ReadableValues(tableOf(projectionOf(document, outputSchema)));
  // guard: next-input-fits-the-loop
  if (next !== undefined && !hasCode) {
    check.mapping(next, '/next', values);
    if (issues.count === 0)
      for (const { path, reason } of inputIssues(inputSchema, check.mappedSchema(next, values)))
        issues.add(path === '' ? '/next' : `/next/${path}`, `does not fit the loop "${loop}": it ${reason}`);
  }
  for (const name of ['terminal', 'confidence'] as const) {
    const path = stop[name]?.path;
    // guard: stopping-output-exists
    if (path !== undefined) checkOutputPath(check, path, `/stop/${name}/path`, outputSchema);
  }
  return issues.list.map(({ path, reason }) => ({ path, reason }));
}

function checkOutputPath(check: ReferenceCheck, path: string, where: string, outputSchema: JsonSchema): void {
  const segments = check.attempt(() => compileJsonPath(path, where))?.leadingSegments ?? [];
  // The paths of a stop begin at the output.
  if (typeof segments[0] === 'string')
    check.mapping(path.replace(/^\$/, '$.output'), where, new ReadableValues(tableOf({ output: outputSchema })));
}

/** Returns the schemas of what `next` can read. */
function projectionOf(
  { signals }: HostedLoopDocument,
  outputSchema: JsonSchema,
): { readonly [name: string]: JsonSchema } {
  const [signal, ...others] = Object.values(signals ?? {});
  const payload = others.length === 0 ? signal?.schema : undefined;
  return {
    loop: TEXT,
    turn: { type: 'integer' },
    head: TEXT,
    input: ANY,
    last: recordOf({ key: TEXT, turnId: TEXT, status: TEXT, output: outputSchema, receipt: TEXT }),
    ...(signal !== undefined && {
      signal: recordOf({ id: TEXT, name: TEXT, payload: payload ?? ANY, receivedAt: TEXT }),
    }),
    handoff: recordOf({ from: TEXT, receipt: TEXT, input: ANY, reason: TEXT }),
    used: ANY,
  };
}

function recordOf(properties: { readonly [name: string]: JsonSchema }): JsonSchema {
  const members = Object.entries(properties).map(([name, schema]) => [name, schema as Json] as const);
  return { type: 'object', properties: Object.fromEntries(members) as JsonObject, additionalProperties: false };
}
