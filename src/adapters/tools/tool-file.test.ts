/** Who may run code, and from where: the same for modules and executables. */
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
const answering = { 'tool.mjs': 'export const run = () => 1;', 'tool.sh': sh('echo 1') };
const fileOf = (scheme: string): string => (scheme === 'exec' ? 'tool.sh' : 'tool.mjs');

for (const { tools, suffix } of kinds) {
  const { scheme } = tools;
  const name = fileOf(scheme);

  verifies('tool.trust', `${scheme}: runs code from a directory that nobody trusts`, async () => {
    const origin = { ...trusted(answering), trusted: false };
    const flaw = tools.unavailableReason(`${name}${suffix}`, origin, {}) ?? '';
    expect(flaw).toContain('--trust');
    expect(flaw).toContain(`rondo trust ${origin.directory}`);
    expect(await failure(tools.open(`${name}${suffix}`, origin, {}))).toEqual({
      code: 'DEFINITION_INVALID',
      message: flaw,
    });
  });

  verifies('tool.trust', `${scheme}: a definition without a file runs what lies about`, () => {
    const flaw = tools.unavailableReason(`${name}${suffix}`, { directory: undefined, trusted: true }, {});
    expect(flaw).toContain('comes from a file');
  });

  verifies('tool.trust', `${scheme}: a path climbs out of the directory of its definition`, async () => {
    const origin = trusted(answering);
    const sibling = `${origin.directory}-beside`;
    mkdirSync(sibling);
    for (const [file, text] of Object.entries(answering)) writeFileSync(join(sibling, file), text, { mode: 0o755 });
    const leaving = [
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
    for (const path of leaving) {
      expect(tools.unavailableReason(`${path}${suffix}`, origin, {}), path).toBeTypeOf('string');
      expect((await failure(tools.open(`${path}${suffix}`, origin, {}))).code, path).toBe('DEFINITION_INVALID');
    }
    for (const path of [name, `./${name}`, `a/../${name}`, `${origin.directory}/${name}`]) {
      expect(tools.unavailableReason(`${path}${suffix}`, origin, {}), path).toBeUndefined();
      expect(await (await tools.open(`${path}${suffix}`, origin, {}))(null, call()), path).toBe(1);
    }
  });

  verifies('tool.trust', `${scheme}: a link leads out of the directory`, async () => {
    const origin = trusted({});
    const outside = trusted(answering).directory;
    symlinkSync(join(outside, name), join(origin.directory, name));
    symlinkSync(outside, join(origin.directory, 'sub'));
    for (const path of [name, `sub/${name}`]) {
      const { code, message } = await failure(tools.open(`${path}${suffix}`, origin, {}));
      expect(code).toBe('TOOL_FAILED');
      expect(message).toContain('link that leaves');
    }
  });

  verifies('tool.trust', `${scheme}: a directory that is itself reached by a link cannot be used`, async () => {
    const origin = trusted(answering);
    const link = join(root, `link-${scheme}`);
    symlinkSync(origin.directory, link);
    const tool = await tools.open(`${name}${suffix}`, { directory: link, trusted: true }, {});
    expect(await tool(null, call())).toBe(1);
  });

  verifies('tool.trust', `${scheme}: a file that is not there, or no file, fails without saying so`, async () => {
    const origin = trusted({});
    mkdirSync(join(origin.directory, 'folder.mjs'));
    symlinkSync('circle.mjs', join(origin.directory, 'circle.mjs'));
    const told = async (path: string): Promise<string> => {
      const { code, message } = await failure(tools.open(`${path}${suffix}`, origin, {}));
      return `${code} ${message}`;
    };
    expect(await told('none.mjs')).toMatch(/^TOOL_FAILED .*none.mjs: There is no such file; .*starts at/);
    expect(await told('folder.mjs')).toMatch(/^TOOL_FAILED .*is not a file/);
    expect(await told('circle.mjs')).toMatch(/^TOOL_FAILED .*ELOOP/);
    expect(await told('folder.mjs/x.mjs')).toMatch(/^TOOL_FAILED .*no such file/);
  });

  verifies('tool.trust', `${scheme}: registering a definition looks at the disk`, () => {
    const flaw = tools.unavailableReason(
      `none.mjs${suffix}`,
      { directory: join(root, 'never made'), trusted: true },
      {},
    );
    expect(flaw).toBeUndefined();
  });
}

verifies('tool.trust', 'a file is swapped for a link to the outside after it was checked', async () => {
  const origin = trusted(answering);
  const outside = trusted({ 'tool.sh': sh('echo 2') }).directory;
  const tool = await execTools().open('tool.sh', origin, {});
  expect(await tool(null, call())).toBe(1);
  renameSync(join(origin.directory, 'tool.sh'), join(origin.directory, 'old.sh'));
  symlinkSync(join(outside, 'tool.sh'), join(origin.directory, 'tool.sh'));
  expect((await failure(tool(null, call()))).message).toContain('link that leaves');
  rmSync(join(origin.directory, 'tool.sh'));
  expect((await failure(tool(null, call()))).message).toContain('no such file');
});
