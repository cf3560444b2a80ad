/**
 * The streams that verbs write to. Node ignores a short write to a file: on a disk that is almost full a document would be cut
 * off without an error. Files are therefore written here, byte for byte.
 */
import { fstatSync, writeSync } from 'node:fs';
import { Writable } from 'node:stream';

/** A terminal, a pipe or a file. */
export type Output = Writable & {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
};

/** Writes bytes from an offset on; returns how many of them were written. */
type WriteBytes = (fd: number, bytes: Buffer, at: number) => number;

/** The stream to write to instead of `process.stdout` or `process.stderr`. */
export function createOutput(stream: Output & { readonly fd: number }, write: WriteBytes = writeSync): Output {
  // guard: files-written-completely
  return stream.isTTY !== true && isFileOrDevice(stream.fd) ? new FileOutput(stream.fd, write) : stream;
}

/** True for a file or a device such as /dev/full; false for a pipe or a socket, which Node writes completely. */
function isFileOrDevice(fd: number): boolean {
  try {
    const stats = fstatSync(fd);
    return stats.isFile() || stats.isCharacterDevice();
  } catch {
    return false;
  }
}

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
      for (let at = 0; at < bytes.length; ) {
        const written = this.writeBytes(this.fd, bytes, at);
        // guard: full-disk-is-an-error
        if (written === 0) throw Object.assign(new Error('ENOSPC: nothing was written'), { code: 'ENOSPC' });
        // guard: short-writes-continued
        at += written;
      }
      done();
    } catch (error) {
      done(error as Error);
    }
  }
}
