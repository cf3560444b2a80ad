/**
 * The streams that verbs read from and write to. Node does not handle short writes to files: on an almost full disk, output would be
 * truncated without an error. Files are therefore written here, with a loop that detects short writes.
 */
import { fstatSync, writeSync } from 'node:fs';
import { type Readable, Writable } from 'node:stream';

/** A terminal, or a pipe or a file to read from. */
export type Input = NodeJS.ReadStream | (Readable & { readonly isTTY?: false });

/** A terminal, a pipe or a file to write to. */
export type Output = Writable & {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
};

/** Writes bytes starting at an offset. Returns the number of bytes written. */
type WriteBytes = (fd: number, bytes: Buffer, offset: number) => number;

/** Returns the stream to use in place of `process.stdout` or `process.stderr`. */
export function createOutput(stream: Output & { readonly fd: number }, write: WriteBytes = writeSync): Output {
  // guard: files-written-completely
  return stream.isTTY !== true && isFileOrDevice(stream.fd) ? new FileOutput(stream.fd, write) : stream;
}

/** Returns true for a file or a character device such as /dev/full. Node writes pipes and sockets completely. */
function isFileOrDevice(fd: number): boolean {
  try {
    const stats = fstatSync(fd);
    return stats.isFile() || stats.isCharacterDevice();
  } catch {
    return false;
  }
}

/** Writes completely to a file descriptor, or fails. */
class FileOutput extends Writable {
  private readonly fd: number;
  private readonly writeBytes: WriteBytes;

  constructor(fd: number, write: WriteBytes) {
    super({ emitClose: false });
    this.fd = fd;
    this.writeBytes = write;
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    try {
      for (let offset = 0; offset < bytes.length; ) {
        const written = this.writeBytes(this.fd, bytes, offset);
        // guard: full-disk-is-an-error
        if (written === 0) throw Object.assign(new Error('ENOSPC: nothing was written'), { code: 'ENOSPC' });
        // guard: short-writes-continued
        offset += written;
      }
      done();
    } catch (error) {
      done(error as Error);
    }
  }
}
