// The definitions, policies and configuration files in the documents are valid.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { parseHostedLoopText } from '../../src/adapters/files/hosted-files.js';
import { loadConfig } from '../../src/adapters/files/index.js';
import { parseToml } from '../../src/adapters/files/parse-toml.js';
import { loadTrustFile } from '../../src/adapters/files/trust-file.js';
import { toolboxTools } from '../../src/adapters/toolbox/index.js';
import { builtinTools, execTools, httpTools, moduleTools } from '../../src/adapters/tools/index.js';
import { parseHostedLoop } from '../../src/host/hosted/hosted-document.js';
import { analyzePlans } from '../../src/loops/plan/analysis/analyze.js';
import { documentParser } from '../../src/loops/plan/workflow-document.js';
import { Registry } from '../../src/loops/registry.js';
import { parseGrant } from '../../src/policy/grant.js';
import { absolute, readText, type SourceText, textFiles } from '../house/tree.js';
import { verifies } from '../verifies.js';

const pages = [{ file: 'README.md', text: readText('README.md') }, ...textFiles(['docs', 'examples'])].filter(
  ({ file }) => file.endsWith('.md'),
);

interface Block {
  readonly page: string;
  readonly line: number;
  readonly text: string;
}

function blocksIn({ file: page, text }: SourceText, language: string): Block[] {
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map((match) => {
    const line = text.slice(0, match.index).split('\n').length;
    return { page, line, text: match[1] ?? '' };
  });
}

const registry = (): Registry => {
  const tools = [builtinTools(), moduleTools(), execTools(), httpTools(), toolboxTools()];
  return new Registry(new Map(tools.map((implementation) => [implementation.scheme, implementation])));
};
const isLoop = (value: unknown): boolean => typeof value === 'object' && value !== null && 'id' in value;
const isGrant = (value: unknown): boolean => typeof value === 'object' && value !== null && 'allowedTools' in value;
const values = pages
  .flatMap((page) => blocksIn(page, 'json'))
  .map((block) => ({ ...block, value: JSON.parse(block.text) }));
const grants = values.filter(({ value }) => isGrant(value));
const documents = values.filter(({ value }) => !isGrant(value));
const isConfig = ({ text }: Block): boolean => text.startsWith('# rondo.toml\n');
const isHarness = ({ text }: Block): boolean => text.startsWith('# harness.toml\n');
const isTrustFile = ({ text }: Block): boolean => text.startsWith('# trust.toml\n');
/** Returns the members of a table that only a hosted loop has. A table without them is the definition of a loop. */
const hostedMembersOf = ({ text }: Block): readonly string[] => {
  const members = Object.keys(parseToml(text) as object);
  return ['stop', 'schedule', 'signals'].filter((name) => members.includes(name));
};
const others = pages
  .flatMap((page) => blocksIn(page, 'toml'))
  .filter((block) => !isConfig(block) && !isTrustFile(block) && !isHarness(block));
const tables = others
  .filter((block) => hostedMembersOf(block).length === 0)
  .map((block) => ({ ...block, value: documentParser.parse(parseToml(block.text), block.page, 'flow') }));
const loops = [...documents.filter(({ value }) => isLoop(value)), ...tables];
const origin = { directory: absolute('.'), trusted: true };

verifies('example.runs', 'the guides contain definitions of every kind', () => {
  expect(new Set(loops.map(({ value }) => value.kind))).toEqual(new Set(['prompt', 'tool', 'composite']));
});

for (const { page, line, value } of loops) {
  verifies('definition.place', `the definition in ${page}, line ${line}, is valid`, () => {
    expect(registry().add(value, origin).definition.id).toBe(value.id);
    const misspelt = { ...value, polcy: {} };
    expect(() => registry().add(misspelt, { ...origin, file: page })).toThrow(`${page} is not a valid definition`);
  });
}

verifies('hosted.document', 'every hosted loop in a guide is valid', () => {
  const hosted = others.filter((block) => hostedMembersOf(block).includes('stop'));
  expect(hosted.length).toBeGreaterThan(3);
  const badFilesOf = (text: string) => parseHostedLoopText('a.toml', text, parseHostedLoop).badFiles;
  for (const { page, line, text } of hosted) {
    expect(badFilesOf(text), `${page}, line ${line}`).toEqual([]);
    expect(badFilesOf(`polcy = 1\n${text}`)).toMatchObject([{ path: '/polcy' }]);
  }
});

verifies('grant.document', 'every grant in a guide is valid', () => {
  expect(grants.length).toBeGreaterThan(0);
  for (const { page, line, value } of grants) {
    expect(() => parseGrant(value, { isOperators: true }), `${page}, line ${line}`).not.toThrow();
    expect(() => parseGrant({ ...value, limit: {} }, { isOperators: true })).toThrow('limit');
  }
});

verifies('plan.check', 'every workflow in a guide is accepted by the analysis', () => {
  const plans = loops.filter(({ value }) => value.composite?.plan !== undefined);
  expect(plans.length).toBeGreaterThan(3);
  for (const { page, line, value } of plans) {
    const loaded = registry();
    expect(analyzePlans([loaded.add(value, origin)], loaded), `${page}, line ${line}`).toEqual([]);
  }
});

verifies('example.runs', 'every policy in a guide is valid', () => {
  const policies = documents.filter(({ value }) => !isLoop(value) && !Array.isArray(value));
  expect(policies.length).toBeGreaterThan(0);
  const schemas = { inputSchema: true, outputSchema: true };
  for (const { page, line, value } of policies) {
    const loop = {
      id: 'p',
      name: 'P',
      version: '1.0.0',
      kind: 'prompt',
      ...schemas,
      prompt: { template: 'p' },
      backend: { id: 'mock' },
      policy: value,
    };
    expect(() => registry().add(loop), `${page}, line ${line}`).not.toThrow();
  }
});

verifies('config.keys', 'every rondo.toml in a guide is valid', async () => {
  const configs = pages.flatMap((page) => blocksIn(page, 'toml')).filter(isConfig);
  expect(configs.length).toBeGreaterThan(0);
  for (const { page, line, text } of configs) {
    const folder = mkdtempSync(join(tmpdir(), 'rondo-config-'));
    try {
      const file = join(folder, 'rondo.toml');
      writeFileSync(file, text);
      expect((await loadConfig(file)).file, `${page}, line ${line}`).toBe(file);
    } finally {
      rmSync(folder, { recursive: true });
    }
  }
});

verifies('authority.trust', 'every trust.toml in a guide is valid', async () => {
  const files = pages.flatMap((page) => blocksIn(page, 'toml')).filter(isTrustFile);
  expect(files.length).toBeGreaterThan(0);
  for (const { page, line, text } of files) {
    const folder = mkdtempSync(join(tmpdir(), 'rondo-trust-'));
    try {
      const file = join(folder, 'trust.toml');
      writeFileSync(file, text, { mode: 0o600 });
      expect((await loadTrustFile(file)).directories, `${page}, line ${line}`).toHaveLength(1);
    } finally {
      rmSync(folder, { recursive: true });
    }
  }
});
