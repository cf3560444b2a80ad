/** What runs under an approval has the approved bytes, or is not counted as it, whatever happens to its file meanwhile. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, linkSync, readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import { built, call, cleanUp, failure, pidIn, runs, sh, trusted } from './fixtures/stage.mjs';
import { execTools } from './index.js';

afterAll(cleanUp);

/** The tool in this directory, approved as it is now. */
async function approvedTool(origin: ReturnType<typeof trusted>) {
  const tools = execTools();
  const approved = await tools.resolve('tool', origin, {})?.({});
  return tools.open('tool', origin, {}, approved);
}

async function exists(file: string): Promise<void> {
  while (!existsSync(file)) await setTimeout(5);
}

/** Ways to change what a path leads to; the last ones leave the approved bytes there. */
const changes: { readonly [how: string]: (tool: string, other: string) => void } = {
  written: (tool, other) => writeFileSync(tool, readFileSync(other)),
  replaced: (tool, other) => renameSync(other, tool),
  removed: (tool) => rmSync(tool),
  'replaced and put back': (tool, other) => {
    linkSync(tool, `${tool}.kept`);
    renameSync(other, tool);
    renameSync(`${tool}.kept`, tool);
  },
  'written and put back': (tool, other) => {
    const approved = readFileSync(tool);
    writeFileSync(tool, readFileSync(other));
    writeFileSync(tool, approved);
  },
};

verifies(
  'approval.bytes',
  'a program whose file changes while it is started never counts as the approved one',
  async () => {
    for (const [how, change] of Object.entries(changes)) {
      for (const end of ['exit', 'sleep 60']) {
        const origin = trusted({
          tool: sh(`echo $$ > pid; touch begun; until [ -e go ]; do sleep 0.01; done; echo 1; ${end}`),
          other: sh('echo 2'),
        });
        const path = (name: string): string => join(origin.directory, name);
        const ends = failure((await approvedTool(origin))(null, call()));
        await exists(path('begun'));
        change(path('tool'), path('other'));
        writeFileSync(path('go'), '');
        const { code, message } = await ends;
        expect([code, message], `${how}, ${end}`).toEqual(['TOOL_FAILED', expect.stringContaining('may have run')]);
        expect(runs(await pidIn(path('pid')))).toBe(false);
      }
    }
  },
);

verifies('approval.bytes', 'a program whose file is changed without end is not started', async () => {
  const origin = trusted({ tool: sh('touch ran; echo 1') });
  const file = join(origin.directory, 'tool');
  const tool = await approvedTool(origin);
  const changing = setInterval(() => utimesSync(file, 1, 1), 10);
  const { code, message } = await failure(tool(null, call()));
  clearInterval(changing);
  expect([code, message]).toEqual([
    'TOOL_NOT_ADMITTED',
    'exec:tool did not run: its file is being changed. Ask again.',
  ]);
  expect(existsSync(join(origin.directory, 'ran'))).toBe(false);
  expect(await tool(null, call())).toBe(1);
});

verifies('approval.bytes', 'a program may change its file once it runs', async () => {
  const origin = trusted({ tool: sh('sleep 1; cp tool new; mv new tool; echo 1') });
  expect(await (await approvedTool(origin))(null, call())).toBe(1);
});

/** Imports a file with a digest in a process without the loader of these tests, and prints how that failed. */
const imports = `
const { importApproved, isChangedSource } = await import(process.argv[1]);
const failed = await importApproved(process.argv[2], process.argv[3], 1).then(() => '', (error) => isChangedSource(error));
console.log(failed);`;

verifies('approval.bytes', 'nothing of a module runs if its file changes before Node reads it', () => {
  const common = "require('node:fs').writeFileSync(require('node:path').join(__dirname, 'ran'), '');\n";
  for (const [name, text] of [
    ['tool.mjs', "import { writeFileSync } from 'node:fs';\nwriteFileSync(new URL('ran', import.meta.url), '');\n"],
    ['tool.cjs', common],
    ['tool.js', common],
  ] as const) {
    const { directory } = trusted({ [name]: text });
    for (const bytes of ['other', text]) {
      const sha256 = createHash('sha256').update(bytes).digest('hex');
      const args = ['--input-type=module', '-e', imports, new URL('approved-source.js', built).href];
      const { stdout } = spawnSync(process.execPath, [...args, join(directory, name), sha256], { encoding: 'utf8' });
      const isApproved = bytes === text;
      expect([stdout.trim(), existsSync(join(directory, 'ran'))], name).toEqual([isApproved ? '' : 'true', isApproved]);
    }
  }
});
