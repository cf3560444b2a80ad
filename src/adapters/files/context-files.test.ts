import { execFileSync } from 'node:child_process';
import { linkSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect } from 'vitest';
import { type ContextProject, contextProject, withContext } from '../../../spec/support/context-fixture.js';
import { verifies } from '../../../spec/verifies.js';
import { readContext } from '../../loops/context/read-context.js';
import type { DefinitionOrigin } from '../../loops/origin.js';
import { contextFilesIn } from './context-files.js';

const KIB = 1024;

function read({ directory }: ContextProject, references: readonly string[], origin?: Partial<DefinitionOrigin>) {
  const files = contextFilesIn({ directory, definitionDirectories: () => [directory] });
  return readContext(references, { directory, trusted: false, ...origin }, { files, summarizeReceipts: undefined });
}

const refusal = (reason: string) => ({ code: 'CONTEXT_REFUSED', message: expect.stringContaining(reason) });

verifies('context.files', 'texts are returned in order, with the digest of their bytes', async () => {
  await withContext({ 'b.md': 'two', 'docs/a.md': '\ufeffone é', 'skills/x.md': 'X', 'skills/y/SKILL.md': 'Y' }, (p) =>
    expect(read(p, ['docs/a.md', 'b.md', 'skill:x', 'skill:y'])).resolves.toEqual([
      {
        name: 'docs/a.md',
        text: '\ufeffone é',
        bytes: 9,
        sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      },
      expect.objectContaining({
        name: 'b.md',
        text: 'two',
        bytes: 3,
        sha256: '3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3',
      }),
      expect.objectContaining({ name: 'skill:x', text: 'X' }),
      expect.objectContaining({ name: 'skill:y', text: 'Y' }),
    ]),
  );
});

verifies('context.files', 'a file of 64 KiB is read, and one byte more is refused', async () => {
  await withContext({ 'most.md': 'x'.repeat(64 * KIB), 'more.md': 'x'.repeat(64 * KIB + 1) }, async (project) => {
    expect(await read(project, ['most.md'])).toMatchObject([{ bytes: 64 * KIB }]);
    await expect(read(project, ['more.md'])).rejects.toMatchObject(refusal('65537 bytes'));
  });
});

verifies('context.files', 'the limits count bytes of UTF-8, not characters', async () => {
  await withContext({ 'more.md': 'é'.repeat(32 * KIB + 1) }, async (project) => {
    await expect(read(project, ['more.md'])).rejects.toMatchObject(refusal('65538 bytes'));
  });
});

verifies('context.files', '256 KiB together are read, and one byte more is refused', async () => {
  const names = ['0.md', '1.md', '2.md', '3.md'];
  const files = Object.fromEntries(names.map((name) => [name, name.padEnd(64 * KIB)]));
  await withContext({ ...files, 'one.md': 'x' }, async (project) => {
    expect(await read(project, names)).toHaveLength(4);
    await expect(read(project, [...names, 'one.md'])).rejects.toMatchObject(refusal('262145 bytes'));
  });
});

verifies('context.files', 'bytes that are not UTF-8 are refused, whatever they are', async () => {
  const project = contextProject();
  try {
    const bytes = fc.uint8Array({ minLength: 1, maxLength: 64 });
    await fc.assert(
      fc.asyncProperty(bytes, async (content) => {
        project.write('x.md', content);
        const isText = Buffer.from(Buffer.from(content).toString()).equals(content);
        const result = await read(project, ['x.md']).catch((thrown) => thrown);
        if (isText) expect(result).toMatchObject([{ text: Buffer.from(content).toString(), bytes: content.length }]);
        else expect(result).toMatchObject(refusal('not UTF-8'));
      }),
      {
        numRuns: 200,
        examples: [[Uint8Array.of(0xff)], [Uint8Array.of(0xed, 0xa0, 0x80)], [Uint8Array.of(0xc0, 0x80)]],
      },
    );
  } finally {
    project.remove();
  }
});

verifies('context.files', 'a link that leaves the directory is refused, and one inside it is followed', async () => {
  await withContext({ 'real.md': 'inside' }, async (project) => {
    const { directory, outside } = project;
    writeFileSync(join(outside, 'secret.md'), 'secret');
    symlinkSync(join(outside, 'secret.md'), join(directory, 'file.md'));
    symlinkSync(outside, join(directory, 'folder'));
    symlinkSync('real.md', join(directory, 'alias.md'));
    await expect(read(project, ['file.md'])).rejects.toMatchObject(refusal('leaves its directory'));
    await expect(read(project, ['folder/secret.md'])).rejects.toMatchObject(refusal('leaves its directory'));
    expect(await read(project, ['alias.md'])).toMatchObject([{ text: 'inside' }]);
  });
});

verifies(
  'context.files',
  'a folder that is swapped for a link to the outside never delivers the file there',
  async () => {
    await withContext({ 'folder/x.md': 'inside', 'other/x.md': 'inside' }, async (project) => {
      const { directory, outside } = project;
      writeFileSync(join(outside, 'x.md'), 'secret');
      symlinkSync(outside, join(directory, 'link'));
      const folder = join(directory, 'folder');
      const reads: Promise<unknown>[] = [];
      for (let n = 0; n < 300; n++) {
        reads.push(read(project, ['folder/x.md']).catch((thrown) => thrown));
        renameSync(folder, join(directory, 'away'));
        renameSync(join(directory, 'link'), folder);
        if (n % 3 === 0) await new Promise((resolve) => setImmediate(resolve));
        renameSync(folder, join(directory, 'link'));
        renameSync(join(directory, 'away'), folder);
      }
      expect(JSON.stringify(await Promise.all(reads))).not.toContain('"secret"');
    });
  },
);

verifies('context.files', 'one file under two names is refused: by a link, a hard link or as a skill', async () => {
  await withContext({ 'a.md': 'A', 'skills/s.md': 'S' }, async (project) => {
    const { directory } = project;
    symlinkSync('a.md', join(directory, 'link.md'));
    linkSync(join(directory, 'a.md'), join(directory, 'hard.md'));
    for (const names of [
      ['a.md', 'link.md'],
      ['hard.md', 'a.md'],
      ['skills/s.md', 'skill:s'],
    ])
      await expect(read(project, names)).rejects.toMatchObject(refusal('the same file as'));
  });
});

verifies('context.files', 'only regular files are read', async () => {
  await withContext({}, async (project) => {
    const { directory } = project;
    mkdirSync(join(directory, 'folder.md'));
    execFileSync('mkfifo', [join(directory, 'pipe.md')]);
    await expect(read(project, ['folder.md'])).rejects.toMatchObject(refusal('directory'));
    await expect(read(project, ['pipe.md'])).rejects.toMatchObject(refusal('not a regular file'));
    await expect(read(project, ['missing.md'])).rejects.toMatchObject(refusal('no such file'));
    await expect(read(project, ['skill:missing'])).rejects.toMatchObject(refusal('skills/missing.md or'));
  });
});

verifies('context.files', 'files of a store are refused', async () => {
  await withContext({ '.rondo/rondo.db': 'text' }, async (project) => {
    symlinkSync('.rondo', join(project.directory, 'data'));
    await expect(read(project, ['data/rondo.db'])).rejects.toMatchObject(refusal('belongs to a store'));
  });
});

verifies('context.files', 'a skill with two files is refused', async () => {
  await withContext({ 'skills/s.md': 'one', 'skills/s/SKILL.md': 'two' }, async (project) => {
    await expect(read(project, ['skill:s'])).rejects.toMatchObject(refusal('remove one'));
  });
});

verifies('context.files', 'a recorded definition that claims another directory reads nothing there', async () => {
  await withContext({ 'a.md': 'A' }, async (project) => {
    writeFileSync(join(project.outside, 'a.md'), 'secret');
    const claimed = { directory: project.outside };
    await expect(read(project, ['a.md'], claimed)).rejects.toMatchObject(refusal('claims the directory'));
    expect(await read(project, ['a.md'], { directory: undefined })).toMatchObject([{ text: 'A' }]);
  });
});
