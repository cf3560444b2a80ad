import { expect } from 'vitest';
import { inProcessorTime } from '../../../spec/support/processor-time.js';
import { verifies } from '../../../spec/verifies.js';
import { isDefinitionModule } from './definition-module.js';

const definitions: readonly string[] = [
  "import { defineLoop } from 'rondo';\nexport const a = defineLoop({ id: 'a' });",
  "import * as rondo from '/opt/rondo/lib/index.js';\nexport default rondo.defineAgent({ id: 'a' });",
  "import { defineLoop as loop } from 'rondo';\nconst a = loop({});\nexport { a };",
  "const { defineLoop } = require('rondo');\nmodule.exports = { a: defineLoop({}) };",
  "exports.a = { id: 'a', version: '1.0.0', kind: 'tool' };",
  'export const a = {"id":"a","version":"1.0.0","kind":"prompt"};',
  `export const a = defineLoop<Input, Output>({ run: async () => \`\${'\`'}\` });`,
  'const pattern = /[\'"`]/g; const half = 1 / 2 / 3; export const a = defineLoop({});',
  `// it's a comment\nexport const a = defineLoop({ template: \`a \${ b ? \`{\${c}}\` : '' } d\` }); export const kind = 'x';`,
];

const scripts: readonly string[] = [
  '',
  "import { createRondo } from 'rondo';\nawait (await createRondo()).run('seed', {});",
  "import { writeFileSync } from 'node:fs';\nwriteFileSync('x', '');\nexport const done = true;",
  "import { defineLoop } from 'rondo';\nconst a = defineLoop({ id: 'a' });\nawait run(a);",
  '// export const a = defineLoop({})\n/* export const b = defineAgent({}) */\nawait seed();',
  'export const text = \'defineLoop\'; console.log("export const a = defineLoop({})");',
  `export const text = \`defineLoop \${ "defineAgent" } \\\` defineLoop\`; await seed();`,
  'export const pattern = /defineLoop["\']/; await seed();',
  "export const a = { kind: 'other' };",
  "const exportable = defineLoop; const a = { kind: 'tool' };",
  "#!/usr/bin/env node\nexport const a = defineLoop({ id: 'a' });",
];

verifies('definition.scripts', 'a module that exports what a define function made is a definition', () => {
  for (const text of definitions) expect(isDefinitionModule('a.ts', text), text).toBe(true);
});

verifies('definition.scripts', 'a script is not a definition, whatever its comments and strings contain', () => {
  for (const text of scripts) expect(isDefinitionModule('a.mjs', text), text).toBe(false);
});

verifies('definition.scripts', 'a module with .loop in its name is a definition', () => {
  const text = "export { support } from '../src/support.js';";
  expect(isDefinitionModule('support.mjs', text)).toBe(false);
  for (const name of ['support.loop.mjs', 'support.loop.js', 'support.loop.ts'])
    expect(isDefinitionModule(name, text)).toBe(true);
  expect(isDefinitionModule('support.loop.mjs', `#!/bin/node\n${text}`)).toBe(false);
});

verifies('definition.scripts', 'a large or broken text is judged in linear time', async () => {
  await inProcessorTime(5000, () => {
    for (const part of ['/', ['`$', '{'].join(''), "'", '/*', '{', '\\', '/[', 'a/b '])
      expect(isDefinitionModule('a.mjs', part.repeat(50_000)), part).toBe(false);
  });
});
