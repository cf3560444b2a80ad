// Outputs of verbs in a clone: its symbolic links do not redirect them to files outside of it.

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { writeOutput } from '../../src/surfaces/output-path.js';
import { hello, Project } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

const WORKFLOW = '[workflow]\nname = "greeting"\n[[steps]]\nname = "a"\nloop = "hello"\n';

/** A directory of the operator with a file, and a clone with links to both and to what does not exist there. */
class LinkedClone extends Project {
  readonly outside = mkdtempSync(join(tmpdir(), 'rondo-precious-'));

  constructor() {
    super({ hello });
    onTestFinished(() => rmSync(this.outside, { recursive: true, force: true }));
    writeFileSync(join(this.outside, 'notes'), 'precious');
    this.write('flow.toml', WORKFLOW);
    this.write('harness.json', {
      cases: [{ name: 'hello', loop: 'hello', input: { name: 'Ada' }, expect: { status: 'ok' } }],
    });
    mkdirSync(this.path('deep/own'), { recursive: true });
    for (const [target, link] of [
      [join(this.outside, 'notes'), 'file'],
      [join(this.outside, 'new'), 'dangling'],
      [this.outside, 'directory'],
      [this.outside, 'deep/directory'],
      [join(this.outside, 'made'), 'missing'],
      ['deep/directory', 'chain'],
      ['deep/own', 'inner'],
    ] as const)
      symlinkSync(target, this.path(link));
  }

  /** What is in the directory of the operator. */
  get content(): readonly string[] {
    return readdirSync(this.outside, { recursive: true, encoding: 'utf8' }).sort();
  }

  /** Runs a verb, and expects that it is refused and leaves the directory of the operator as it is. */
  async expectRefused(args: readonly string[]): Promise<void> {
    const { code, stderr } = await this.run(args);
    expect([args, this.content], 'a clone redirected a write').toEqual([args, ['notes']]);
    expect(readFileSync(join(this.outside, 'notes'), 'utf8'), args.join(' ')).toBe('precious');
    expect([args, code]).toEqual([args, 64]);
    expect(stderr).toMatch(/is a symbolic link to .*, and .* is not trusted.*run: rondo trust |exists already/);
  }
}

verifies('authority.paths', 'an export follows no link of a clone to the outside', async () => {
  const clone = new LinkedClone();
  await clone.json(['run', 'hello', '--input', '{"name": "Ada"}']);
  for (const out of ['file', 'dangling', 'directory/x', 'deep/directory/x', 'chain/x', 'inner/../chain/x'])
    await clone.expectRefused(['export', '--out', out]);
  // The same from elsewhere, with an absolute path.
  const other = new Project({});
  const { code } = await other.run(['export', '--data', clone.path('.rondo'), '--out', clone.path('directory/x')]);
  expect([code, clone.content]).toEqual([64, ['notes']]);
});

verifies(
  'authority.paths',
  'a link in a project below /dev, where memory file systems are, is not followed',
  (context) => {
    context.skip(!existsSync('/dev/shm'), 'needs /dev/shm');
    const clone = mkdtempSync('/dev/shm/rondo-clone-');
    onTestFinished(() => rmSync(clone, { recursive: true, force: true }));
    symlinkSync(join(clone, 'notes'), join(clone, 'inner'));
    symlinkSync(join(tmpdir(), 'made'), join(clone, 'outer'));
    const write = (name: string): void => writeOutput(join(clone, name), Buffer.from('x'), () => false);
    write('inner');
    expect(() => write('outer')).toThrow(/is a symbolic link to/);
    expect(existsSync(join(tmpdir(), 'made'))).toBe(false);
  },
);

verifies(
  'authority.paths',
  'a converted plan, receipts of a harness and a new project follow no link of a clone',
  async () => {
    const clone = new LinkedClone();
    for (const out of ['file', 'dangling', 'directory/x', 'chain/x'])
      await clone.expectRefused(['plan', 'convert', 'flow.toml', '--out', out]);
    for (const target of ['directory/x', 'missing', 'missing/x', 'chain/x'])
      await clone.expectRefused(['harness', '.', '--receipt-dir', target]);
    for (const target of ['directory/x', 'missing', 'chain/x']) await clone.expectRefused(['init', target]);
    symlinkSync(join(clone.outside, 'made'), clone.path('deep/own/loops'));
    await clone.expectRefused(['init', 'deep/own']);
    expect(readdirSync(clone.path('deep/own')), 'a project was written in part').toEqual(['loops']);
  },
);

verifies(
  'authority.paths',
  'outputs go where the operator says, also outside of a clone and through trusted links',
  async () => {
    const clone = new LinkedClone();
    await clone.json(['run', 'hello', '--input', '{"name": "Ada"}']);
    const written = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'));
    for (const [args, path] of [
      [['export', '--out', join(clone.outside, 'a')], join(clone.outside, 'a')],
      [['export', '--out', 'inner/a'], clone.path('deep/own/a')],
      [['export', '--out', 'dangling', '--trust', '.'], join(clone.outside, 'new')],
      [['plan', 'convert', 'flow.toml', '--out', join(clone.outside, 'b')], join(clone.outside, 'b')],
      [['plan', 'convert', 'flow.toml', '--out', 'directory/c', '--trust', '.'], join(clone.outside, 'c')],
      [['harness', '.', '--receipt-dir', join(clone.outside, 'd/e')], join(clone.outside, 'd/e/keys.json')],
      [['harness', '.', '--receipt-dir', 'directory/f', '--trust', '.'], join(clone.outside, 'f/keys.json')],
      [['init', join(clone.outside, 'g')], join(clone.outside, 'g/package.json')],
      [['init', 'directory/h', '--trust', '.'], join(clone.outside, 'h/package.json')],
    ] as const) {
      const { code, stderr } = await clone.run(args);
      expect([args, code, stderr]).toEqual([args, 0, expect.any(String)]);
      expect(written(path), args.join(' ')).toBeTypeOf('object');
    }
    const before = readFileSync(join(clone.outside, 'a'));
    for (const out of [join(clone.outside, 'a'), 'inner/a', 'file']) {
      const { code, stderr } = await clone.run(['export', '--out', out, '--trust', '.']);
      expect([code, stderr]).toEqual([64, expect.stringContaining('exists already; --out never overwrites a file')]);
      expect(stderr).toContain('name another file, or remove that one first');
    }
    expect(readFileSync(join(clone.outside, 'a')), 'an export overwrote a file').toEqual(before);
    expect(readFileSync(join(clone.outside, 'notes'), 'utf8')).toBe('precious');
    expect((await clone.run(['export', '--out', '/dev/null'])).code, 'a device has nothing to lose').toBe(0);
  },
);
