// The cost of fifty typed loops for the type checker, compared with plain functions over the same schemas. It is counted in
// instantiations and types, which are the same on every machine.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { absolute } from '../house/tree.js';
import { verifies } from '../verifies.js';

const LOOPS = 50;
/** The limits per loop, above the plain functions. Measured: 928 instantiations and 174 types. */
const LIMITS = { instantiations: 1_100, types: 220 };

/** The limit per loop with two JSON Schema literals, above loops whose schemas are not literals. Measured: 916. */
const LITERAL_INSTANTIATIONS = 1_100;

const schemas = (i: number): string => `
export const in${i} = z.object({ id: z.string(), n: z.number(), tags: z.array(z.string()), kind: z.enum(['a', 'b']).optional() });
export const out${i} = z.object({ id: z.string(), total: z.number(), parts: z.array(z.object({ name: z.string(), n: z.number() })) });`;

const loop = (i: number): string =>
  i === 0
    ? `export const loop0 = defineLoop({ id: 'loop-0', input: in0, output: out0, safety: 'pure',
  tool: ({ id, n, tags }) => ({ id, total: n, parts: tags.map((name) => ({ name, n })) }) });`
    : `export const loop${i} = defineLoop({ id: 'loop-${i}', input: in${i}, output: out${i},
  run: async ({ id, n, tags, kind }, scope) => {
    const before = await scope.call(loop${i - 1}, { id, n: n + 1, tags, ...(kind && { kind }) });
    const [one, two] = await scope.all([
      async () => before.total,
      (branch) => branch.call(loop${i - 1}, { id, n, tags }),
    ]);
    return { id, total: one + two.total, parts: two.parts };
  } });`;

/** The same work as plain functions over the same schemas. */
const plain = (i: number): string => `
export const plain${i} = async ({ id, n, tags }: z.output<typeof in${i}>): Promise<z.input<typeof out${i}>> => {
  ${i === 0 ? 'return { id, total: n, parts: tags.map((name) => ({ name, n })) };' : ''}
  ${i > 0 ? `const [one, two] = await Promise.all([plain${i - 1}({ id, n: n + 1, tags }), plain${i - 1}({ id, n, tags })]);` : ''}
  ${i > 0 ? 'return { id, total: one.total + two.total, parts: two.parts };' : ''}
};`;

const all = (make: (i: number) => string): string => Array.from({ length: LOOPS }, (_, i) => make(i)).join('\n');

function costOf(folder: string, name: string, text: string): { instantiations: number; types: number } {
  const file = join(folder, `${name}.ts`);
  writeFileSync(file, text);
  const options = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    module: 'nodenext',
    moduleResolution: 'nodenext',
    target: 'ES2023',
    types: [],
    paths: { rondo: [absolute('dist/index.d.ts')] },
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, files: [file] }));
  const args = [absolute('node_modules/typescript/bin/tsc'), '-p', folder, '--extendedDiagnostics'];
  const output = execFileSync(process.execPath, args, { encoding: 'utf8' });
  const figure = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(output)?.[1]);
  return { instantiations: figure('Instantiations'), types: figure('Types') };
}

function withFolder(use: (folder: string) => void): void {
  const folder = mkdtempSync(absolute('node_modules/.types-budget-'));
  try {
    use(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

verifies('types.budget', 'fifty typed loops stay within the budget of the type checker', () => {
  withFolder((folder) => {
    const head = `import { z } from 'zod';\nimport { defineLoop } from 'rondo';\nexport { defineLoop };\n${all(schemas)}`;
    const baseline = costOf(folder, 'plain', `${head}\n${all(plain)}`);
    const loops = costOf(folder, 'loops', `${head}\n${all(loop)}`);
    const perLoop = (unit: 'instantiations' | 'types'): number => (loops[unit] - baseline[unit]) / LOOPS;
    expect(perLoop('instantiations')).toBeGreaterThan(0);
    expect(perLoop('instantiations')).toBeLessThan(LIMITS.instantiations);
    expect(perLoop('types')).toBeLessThan(LIMITS.types);
  });
});

verifies('types.budget', 'fifty loops with JSON Schema literals stay within the budget of the type checker', () => {
  const members = `id: { type: 'string' }, n: { type: 'number' }, tags: { type: 'array', items: { type: 'string' } }`;
  const literal = `{ type: 'object', properties: { ${members}, kind: { enum: ['a', 'b'] } }, required: ['id', 'n', 'tags'] }`;
  const typed = (i: number): string => `
export const loop${i} = defineLoop({ id: 'loop-${i}', input: ${literal}, output: ${literal},
  run: ({ id, n, tags, kind }) => ({ id, n: n + 1, tags, ...(kind && { kind }) }) });`;
  const untyped = (i: number): string => `
export const loop${i} = defineLoop({ id: 'loop-${i}', input: schema, output: schema, run: () => (${literal}) });`;
  withFolder((folder) => {
    const head = `import { defineLoop, type AnySchema } from 'rondo';\ndeclare const schema: AnySchema;\n`;
    const baseline = costOf(folder, 'untyped', `${head}${all(untyped)}`);
    const loops = costOf(folder, 'typed', `${head}${all(typed)}`);
    const instantiations = (loops.instantiations - baseline.instantiations) / LOOPS;
    expect(instantiations).toBeGreaterThan(0);
    expect(instantiations).toBeLessThan(LITERAL_INSTANTIATIONS);
  });
});

verifies('types.budget', 'the compiler rejects an input that the schema of a loop refuses', () => {
  withFolder((folder) => {
    const head = `import { z } from 'zod';\nimport { defineLoop } from 'rondo';\n${schemas(0)}\n${loop(0)}`;
    const wrong = `\nexport const bad = defineLoop({ id: 'bad', input: in0, output: out0, run: (_, scope) => scope.call(loop0, { id: 1 }) });`;
    expect(() => costOf(folder, 'right', head)).not.toThrow();
    expect(() => costOf(folder, 'wrong', head + wrong)).toThrow();
  });
});
