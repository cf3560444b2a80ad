// Conversion of plans between TOML and JSON.

import fc from 'fast-check';
import { expect } from 'vitest';
import { parseDefinitionText } from '../../src/adapters/files/index.js';
import { canonicalJson } from '../../src/json/canonical.js';
import { planDigest } from '../../src/loops/plan/plan.js';
import { documentParser } from '../../src/loops/plan/workflow-document.js';
import type { Json } from '../../src/protocol/json.js';
import type { LoopDef } from '../../src/protocol/loop.js';
import type { PlanSpec } from '../../src/protocol/plan.js';
import { renderDefinition } from '../../src/surfaces/compose.js';
import { planDefinition } from '../support/random-plan-documents.js';
import { repetitions } from '../support/repetitions.js';
import { workflowProject } from '../support/workflow-project.js';
import { verifies } from '../verifies.js';

const canonical = (definition: LoopDef): string => canonicalJson(definition as unknown as Json);

function parse(file: string, text: string): LoopDef {
  const result = parseDefinitionText(file, text, documentParser);
  if ('definition' in result) return result.definition;
  throw new Error(`${result.badFiles.map(({ path, reason }) => `${path}: ${reason}`).join('\n')}\n${text}`);
}

verifies('plan.convert', 'any plan becomes TOML and JSON and back without a change', async () => {
  const property = fc.asyncProperty(planDefinition, async ({ version, ...rest }) => {
    const plan = rest.composite?.plan as PlanSpec;
    const definition = parse('flow.json', JSON.stringify({ ...rest, version: version ?? `0.0.0+${planDigest(plan)}` }));
    const toml = await renderDefinition(definition, 'toml');
    const fromToml = parse('other.toml', toml);
    expect(canonical(fromToml)).toBe(canonical(definition));
    expect(planDigest(fromToml.composite?.plan as PlanSpec)).toBe(planDigest(plan));
    expect(canonical(parse('other.json', await renderDefinition(fromToml, 'json')))).toBe(canonical(definition));
    // A name other than the id is the only thing in these plans that a workflow file cannot express.
    expect(toml.includes('\nkind = ') || toml.startsWith('kind = ')).toBe(rest.name !== rest.id);
    expect(/^version = "0\.0\.0\+/m.test(toml)).toBe(version === undefined && rest.name !== rest.id);
  });
  await fc.assert(property, { numRuns: repetitions(1000) });
});

verifies('plan.convert', 'a value that TOML cannot express is refused with its path', async () => {
  const { tool: _, ...base } = { tool: 0, id: 'flow', name: 'flow', version: '1.0.0', kind: 'composite' };
  const steps = [{ loop: 'lint', on_error: { value: null } }];
  const definition = { ...base, inputSchema: {}, outputSchema: {}, composite: { plan: { steps } } };
  const error = await renderDefinition(definition as unknown as LoopDef, 'toml').catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 'DEFINITION_INVALID', data: { path: '/steps/0/on_error/value' } });
});

const FLOW = `# Fixes a file.
[workflow]
name = "fix"
description = "Fixes \\"one\\" file"
retry = "immediate"

[[workflow.steps]]
action = "analyze --health"
capture = "report"

[[workflow.steps]]
type = "fan-out"

[[workflow.steps.fan-out.branches]]
steps = [{ action = "edit {file} 'fix issues'" }]
`;

verifies('plan.convert', 'plan convert prints the other format, and both files have one digest', async () => {
  const project = workflowProject({ 'fix.toml': FLOW });
  const digestOf = async (file: string): Promise<unknown> => (await project.json(['show', file])).digest;
  const digest = await digestOf('loops/fix.toml');
  const json = await project.run(['plan', 'convert', 'loops/fix.toml']);
  expect(json.code).toBe(0);
  expect(JSON.parse(json.stdout).composite.plan).not.toHaveProperty('verbs');
  expect((await project.run(['plan', 'convert', 'loops/fix.toml', '--out', 'json/fix.json'])).code).toBe(64);
  project.write('json/lint.json', project.read('loops/lint.json'));
  expect((await project.run(['plan', 'convert', 'loops/fix.toml', '--out', 'json/fix.json'])).code).toBe(0);
  expect(project.read('json/fix.json')).toBe(json.stdout);
  expect(await digestOf('json/fix.json')).toBe(digest);
  const toml = await project.run(['plan', 'convert', 'json/fix.json']);
  expect(toml.stdout).toContain('name = "fix"\n');
  expect(toml.stdout).not.toContain('version');
  project.write('toml/fix.toml', toml.stdout);
  expect(await digestOf('toml/fix.toml')).toBe(digest);
  const again = await project.run(['plan', 'convert', 'json/fix.json', '--to', 'json']);
  expect(again.stdout).toBe(json.stdout);
  expect(await project.json(['plan', 'convert', 'json/fix.json'])).toMatchObject({ format: 'toml', text: toml.stdout });
});

verifies('plan.convert', 'plan convert refuses what it cannot do, and overwrites nothing', async () => {
  const project = workflowProject({ 'fix.toml': FLOW, 'bad.toml': '[[steps]]\nacton = "view"\n' });
  const before = project.read('loops/fix.toml');
  const lines: readonly (readonly [code: number, message: string, ...args: string[]])[] = [
    [64, 'the only one is: rondo plan convert', 'plan', 'draw', 'loops/fix.toml'],
    [64, 'There is no file', 'plan', 'convert', 'loops/none.toml'],
    [64, 'must be toml or json', 'plan', 'convert', 'loops/fix.toml', '--to', 'yaml'],
    [64, 'must end in .toml or .json', 'plan', 'convert', 'rondo.mjs'],
    [64, 'never overwrites', 'plan', 'convert', 'loops/fix.toml', '--out', 'loops/fix.toml'],
    [1, 'loops/bad.toml:1:3: /steps/0', 'plan', 'convert', 'loops/bad.toml'],
  ];
  for (const [code, message, ...args] of lines) {
    const result = await project.run(args);
    expect(result.stderr).toContain(message);
    expect(result.code, args.join(' ')).toBe(code);
  }
  expect(project.read('loops/fix.toml')).toBe(before);
});
