/** The files that `module:` and `exec:` tools may run. */
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect } from 'vitest';
import { call, cleanUp, failure, root, sh, trusted } from '../../../spec/support/tools-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { execTools, moduleTools } from './index.js';

afterAll(cleanUp);

const kinds = [
  { tools: execTools(), suffix: '' },
  { tools: moduleTools(), suffix: '#run' },
];
const toolFiles = { 'tool.mjs': 'export const run = () => 1;', 'tool.sh': sh('echo 1') };
const fileOf = (scheme: string): string => (scheme === 'exec' ? 'tool.sh' : 'tool.mjs');

for (const { tools, suffix } of kinds) {
  const { scheme } = tools;
  const name = fileOf(scheme);

  verifies('tool.trust', `${scheme}: no code runs from an untrusted directory`, async () => {
    const origin = { ...trusted(toolFiles), trusted: false };
    const reason = tools.unavailableReason(`${name}${suffix}`, origin, {}) ?? '';
    expect(reason).toContain('--trust');
    expect(reason).toContain(`rondo trust ${origin.directory}`);
    expect(await failure(tools.open(`${name}${suffix}`, origin, {}))).toEqual({
      code: 'DEFINITION_INVALID',
      message: reason,
    });
  });

  verifies('tool.trust', `${scheme}: a definition that does not come from a file cannot name one`, () => {
    const reason = tools.unavailableReason(`${name}${suffix}`, { directory: undefined, trusted: true }, {});
    expect(reason).toContain('comes from a file');
  });

  verifies('tool.trust', `${scheme}: a path outside of the directory of its definition makes it invalid`, async () => {
    const origin = trusted(toolFiles);
    const sibling = `${origin.directory}-beside`;
    mkdirSync(sibling);
    for (const [file, text] of Object.entries(toolFiles)) writeFileSync(join(sibling, file), text, { mode: 0o755 });
    const outsidePaths = [
      `../${name}`,
      `a/../../${name}`,
      `./../${name}`,
      `/bin/${name}`,
      `${sibling}/${name}`,
      '..',
      '.',
      '',
      `${name}\0.mjs`,
    ];
    for (const path of outsidePaths) {
      expect(tools.unavailableReason(`${path}${suffix}`, origin, {}), path).toBeTypeOf('string');
      expect((await failure(tools.open(`${path}${suffix}`, origin, {}))).code, path).toBe('DEFINITION_INVALID');
    }
    for (const path of [name, `./${name}`, `a/../${name}`, `${origin.directory}/${name}`]) {
      expect(tools.unavailableReason(`${path}${suffix}`, origin, {}), path).toBeUndefined();
      expect(await (await tools.open(`${path}${suffix}`, origin, {}))(null, call()), path).toBe(1);
    }
  });

  verifies('tool.trust', `${scheme}: a link to a file outside of the directory is not followed`, async () => {
    const origin = trusted({});
    const outside = trusted(toolFiles).directory;
    symlinkSync(join(outside, name), join(origin.directory, name));
    symlinkSync(outside, join(origin.directory, 'sub'));
    for (const path of [name, `sub/${name}`]) {
      const { code, message } = await failure(tools.open(`${path}${suffix}`, origin, {}));
      expect(code).toBe('TOOL_FAILED');
      expect(message).toContain('link that leaves');
    }
  });

  verifies('tool.trust', `${scheme}: the directory of the definition may itself be a link`, async () => {
    const origin = trusted(toolFiles);
    const link = join(root, `link-${scheme}`);
    symlinkSync(origin.directory, link);
    const tool = await tools.open(`${name}${suffix}`, { directory: link, trusted: true }, {});
    expect(await tool(null, call())).toBe(1);
  });

  verifies('tool.trust', `${scheme}: the error for a missing file or a directory states the reason`, async () => {
    const origin = trusted({});
    mkdirSync(join(origin.directory, 'folder.mjs'));
    symlinkSync('circle.mjs', join(origin.directory, 'circle.mjs'));
    const errorFor = async (path: string): Promise<string> => {
      const { code, message } = await failure(tools.open(`${path}${suffix}`, origin, {}));
      return `${code} ${message}`;
    };
    expect(await errorFor('none.mjs')).toMatch(/^TOOL_FAILED .*none.mjs: There is no such file; .*is relative to/);
    expect(await errorFor('folder.mjs')).toMatch(/^TOOL_FAILED .*is not a file/);
    expect(await errorFor('circle.mjs')).toMatch(/^TOOL_FAILED .*ELOOP/);
    expect(await errorFor('folder.mjs/x.mjs')).toMatch(/^TOOL_FAILED .*no such file/);
  });

  verifies('tool.trust', `${scheme}: registering a definition does not access the file system`, () => {
    const reason = tools.unavailableReason(
      `none.mjs${suffix}`,
      { directory: join(root, 'never created'), trusted: true },
      {},
    );
    expect(reason).toBeUndefined();
  });
}

verifies(
  'tool.trust',
  'a file that is replaced by a link to the outside after it was checked does not run',
  async () => {
    const origin = trusted(toolFiles);
    const outside = trusted({ 'tool.sh': sh('echo 2') }).directory;
    const tool = await execTools().open('tool.sh', origin, {});
    expect(await tool(null, call())).toBe(1);
    renameSync(join(origin.directory, 'tool.sh'), join(origin.directory, 'old.sh'));
    symlinkSync(join(outside, 'tool.sh'), join(origin.directory, 'tool.sh'));
    expect((await failure(tool(null, call()))).message).toContain('link that leaves');
    rmSync(join(origin.directory, 'tool.sh'));
    expect((await failure(tool(null, call()))).message).toContain('no such file');
  },
);
