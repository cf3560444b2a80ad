/**
 * The directory of keys as one process uses it. It stays the directory that the process first found or created there:
 * one that was moved away or removed is not created again, and another one in its place is refused, because it belongs to
 * another store or to none.
 */
import { lstat, mkdir } from 'node:fs/promises';
import { Fault } from '../../base/errors.js';
import { accessProblem } from './own-file.js';
import { writeFault } from './write-fault.js';

/** A directory that must not be replaced while this process runs. */
export class PinnedDirectory {
  readonly path: string;
  /** Called before the directory is created. Throws if it must not be. */
  assertCreatable: () => void = () => {};
  /** Which directory it is; undefined until it is found. */
  private identity: string | undefined;

  constructor(path: string) {
    this.path = path;
  }

  /**
   * Throws a Fault with the code KEYS_UNUSABLE if the directory is not the one that was there before. One that this
   * process has not seen yet may be missing.
   */
  async check(): Promise<void> {
    const found = await this.find();
    this.identity ??= found;
    // guard: replaced-keys-refused
    if (found !== this.identity) throw this.unusable(found === undefined ? 'is gone' : 'was replaced');
  }

  /** Creates the directory, if this process has never seen it. Throws like `check`. */
  async create(): Promise<void> {
    await this.check();
    if (this.identity !== undefined) return;
    this.assertCreatable();
    try {
      await mkdir(this.path, { recursive: true, mode: 0o700 });
    } catch (thrown) {
      throw writeFault(this.path, `The keys cannot be used: the directory ${this.path} cannot be created.`, thrown);
    }
    await this.check();
  }

  private async find(): Promise<string | undefined> {
    try {
      const { dev, ino, birthtimeMs } = await lstat(this.path);
      return `${dev}:${ino}:${birthtimeMs}`;
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw this.unusable(accessProblem(thrown) ?? 'cannot be read', thrown);
    }
  }

  private unusable(problem: string, cause?: unknown): Fault {
    const advice = cause === undefined ? ', and was there when this process began. Restore it, and start again' : '';
    const message = `The keys cannot be used: the directory ${this.path} ${problem}${advice}.`;
    return new Fault('KEYS_UNUSABLE', message, { path: this.path }, cause);
  }
}
