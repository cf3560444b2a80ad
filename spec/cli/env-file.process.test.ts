// Keys from .env in the code of a project, which each process loads again.

import { expect } from 'vitest';
import { schemas } from '../support/cli-project.js';
import { verifies } from '../verifies.js';
import { Clone } from './clone.js';

const CODE = `const show = process.env.SHOP_KEY ?? null;
export const shown = { definition: { id: 'shown', name: 'Shown', version: '1.0.0', kind: 'tool', inputSchema: true, outputSchema: true } };
console.error('SHOP_KEY=' + show);`;

verifies(
  'authority.env-file',
  'code of a trusted project sees the keys, and other verbs say why they are not used',
  async () => {
    const clone = new Clone();
    clone.write('loops/shown.mjs', CODE);
    clone.write('loops/echo.json', {
      ...{ id: 'echo', name: 'E', version: '1.0.0', kind: 'tool', ...schemas() },
      tool: { implementation: 'builtin:echo' },
    });
    clone.write('.env', 'SHOP_KEY=from-file\nNODE_OPTIONS=--import ./evil.mjs\n');
    const untrusted = await clone.run(['run', 'echo']);
    expect(untrusted.stderr).toMatch(/The keys in \.env are not used, because .* is not trusted\. .*rondo trust/);
    expect((await clone.runProcess(['list', '--trust', '.'])).stderr).toContain('SHOP_KEY=from-file');
    const own = await clone.runProcess(['list', '--trust', '.'], { env: { SHOP_KEY: 'own' } });
    expect(own.stderr).toContain('SHOP_KEY=own');
    const { checks } = await clone.jsonProcess<{ checks: { name: string; message: string; advice?: string }[] }>([
      'doctor',
      '--trust',
      '.',
    ]);
    expect(checks.find(({ name }) => name === '.env')).toMatchObject({
      message: expect.stringContaining('sets SHOP_KEY'),
      advice: expect.stringContaining('not read: NODE_OPTIONS'),
    });
  },
);
