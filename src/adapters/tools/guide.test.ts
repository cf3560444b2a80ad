/** The definitions and the module in docs/guides/tools.md are valid. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect } from 'vitest';
import { call, cleanUp, trusted } from '../../../spec/support/tools-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import type { LoopDef } from '../../protocol/loop.js';
import { builtinTools, execTools, httpTools, moduleTools } from './index.js';

afterAll(cleanUp);

const guide = readFileSync(join(fileURLToPath(new URL('../../../docs/guides/', import.meta.url)), 'tools.md'), 'utf8');
const blocks = (language: string): string[] =>
  [...guide.matchAll(new RegExp(`^\`\`\`${language}\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map(([, text]) => text ?? '');
const specs = blocks('json').map((text) => (JSON.parse(text) as LoopDef).tool);

const implementations = [
  { id: 'tool.builtin', tools: builtinTools() },
  { id: 'tool.module', tools: moduleTools() },
  { id: 'tool.exec', tools: execTools() },
  { id: 'tool.http', tools: httpTools() },
] as const;

for (const { id, tools } of implementations) {
  verifies(id, `the definitions for ${tools.scheme}: in the guide are valid`, () => {
    const { scheme } = tools;
    const examples = specs.filter((spec) => spec?.implementation.startsWith(`${scheme}:`));
    expect(examples.length).toBeGreaterThan(0);
    for (const spec of examples) {
      const target = spec?.implementation.slice(scheme.length + 1) ?? '';
      expect(tools.unavailableReason(target, trusted({}), spec?.config ?? {})).toBeUndefined();
    }
  });
}

verifies('tool.module', 'the module in the guide works with its definition', async () => {
  const [source = ''] = blocks('js');
  const config = { separator: '-' };
  const tool = await moduleTools().open('./text.mjs#slug', trusted({ 'text.mjs': source }), config);
  expect(await tool({ title: 'Hello big World' }, call({ config }))).toBe('hello-big-world');
});
