import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { smallestHostedLoop } from '../../../spec/support/random-hosted-documents.js';
import { verifies } from '../../../spec/verifies.js';
import { findHostedLoopFile, readHostedLoopFile } from './hosted-files.js';
import type { ProjectSettings } from './project-settings.js';

/** Writes files below a new directory, and returns it with the settings of a project there. */
function projectOf(files: { readonly [path: string]: object }): { directory: string; settings: ProjectSettings } {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'rondo-find-')));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  mkdirSync(join(directory, 'loops'));
  for (const [path, content] of Object.entries(files)) writeFileSync(join(directory, path), JSON.stringify(content));
  const settings = { cwd: directory, loopsDirectory: join(directory, 'loops'), hasExplicitLoops: true };
  return { directory, settings: settings as unknown as ProjectSettings };
}

verifies(
  'hosted.document',
  'a hosted loop is found by its id among the definitions, or by the path of its file',
  async () => {
    const { stop: _, ...unbounded } = smallestHostedLoop;
    const { directory, settings } = projectOf({
      'loops/a.json': smallestHostedLoop,
      'loops/b.json': { ...unbounded, id: 'unbounded' },
      'c.json': { ...smallestHostedLoop, id: 'outside' },
    });
    const file = join(directory, 'loops/a.json');
    expect(await findHostedLoopFile(settings, 'smallest')).toEqual({ file, document: smallestHostedLoop });
    expect((await findHostedLoopFile(settings, 'c.json')).document.id).toBe('outside');
    await expect(findHostedLoopFile(settings, 'unbounded')).rejects.toThrow(
      /b\.json:1:1: \/stop: is missing: a hosted loop always has a maximum of turns/,
    );
    await expect(findHostedLoopFile(settings, 'smalest')).rejects.toThrow(
      /no hosted loop "smalest".*Did you mean "smallest"/,
    );
    await expect(readHostedLoopFile(join(directory, 'none.toml'))).rejects.toThrow('it does not exist');
  },
);

verifies('hosted.grant', 'relative roots of a hosted loop file start at the directory of the file', async () => {
  const grant = { allowedTools: [], limits: {}, roots: ['loops', '/srv'] };
  const handoffs = [{ target: 'b', input: '$', reason: 'Why.', grant: { roots: ['loops/x'] } }];
  const { directory } = projectOf({
    'c.json': { ...smallestHostedLoop, grant, turn: { grant: { roots: ['.'] } }, handoffs },
  });
  const { document } = await readHostedLoopFile(join(directory, 'c.json'));
  expect(document.grant.roots).toEqual([join(directory, 'loops'), '/srv']);
  expect(document.turn?.grant?.roots).toEqual([directory]);
  expect(document.handoffs?.[0]?.grant?.roots).toEqual([join(directory, 'loops/x')]);
});
