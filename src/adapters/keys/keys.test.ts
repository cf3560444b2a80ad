import { execFile } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, vi } from 'vitest';
import { withoutAccess } from '../../../spec/support/other-user.js';
import { verifies } from '../../../spec/verifies.js';
import { isSignatureValid, publicKeyOf } from '../../base/ed25519.js';
import { TrustedKeys } from '../../base/trusted-keys.js';
import type { TrustedKey } from '../../protocol/receipt.js';
import { CheckpointFile, KeyDirectory, KeyOrigin, StreamLengths, signerFromEnv } from './index.js';

let directory = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'rondo-keys-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const SEED = Buffer.alloc(32, 0x42).toString('base64');

verifies(
  'receipt.key-files',
  'a key is created on first use, for its role, and its file is for its owner only',
  async () => {
    const keys = new KeyDirectory(join(directory, 'new'));
    expect(await keys.list()).toEqual({ keys: [] });
    const [receipt, checkpoint] = [await keys.signer('receipt'), await keys.signer('checkpoint')];
    expect(receipt.kid).not.toBe(checkpoint.kid);
    expect((await keys.signer('receipt')).kid).toBe(receipt.kid);
    expect(statSync(join(directory, 'new', `${receipt.kid}.key`)).mode & 0o777).toBe(0o600);
    const bytes = Buffer.from('a receipt');
    expect(isSignatureValid(bytes, await receipt.sign(bytes), publicKeyOf(receipt.publicKey))).toBe(true);
    const trusted = TrustedKeys.parse(JSON.parse(readFileSync(join(directory, 'new', 'keys.json'), 'utf8')));
    expect(trusted.forReceipt(receipt.kid, undefined)).toMatchObject({ bytes: receipt.publicKey });
    expect(trusted.forReceipt(checkpoint.kid, undefined)).toBe('key_role');
    expect(trusted.forCheckpoint(checkpoint.kid, 3)).toMatchObject({ bytes: checkpoint.publicKey });
  },
);

verifies('receipt.key-files', 'of concurrent first uses, in one process or several, one creates the key', async () => {
  const many = await Promise.all(Array.from({ length: 8 }, () => new KeyDirectory(directory).signer('receipt')));
  expect(new Set(many.map(({ kid }) => kid)).size).toBe(1);
  const module = fileURLToPath(new URL('./index.ts', import.meta.url));
  const shared = join(directory, 'shared');
  const script = `import { KeyDirectory } from ${JSON.stringify(module)};
    const { kid } = await new KeyDirectory(${JSON.stringify(shared)}).signer('receipt');
    process.stdout.write(kid);`;
  const run = (): Promise<{ readonly stdout: string }> =>
    promisify(execFile)(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script]);
  const outputs = await Promise.all([run(), run(), run()]);
  expect(new Set(outputs.map(({ stdout }) => stdout)).size).toBe(1);
  const { keys } = await new KeyDirectory(shared).list();
  expect(keys.map(({ role }) => role).sort(), 'one key of each role').toEqual(['checkpoint', 'receipt']);
  expect(readdirSync(shared).sort()).toEqual(['keys.json', ...keys.map(({ kid }) => `${kid}.key`)].sort());
});

verifies(
  'receipt.key-files',
  'a key file that others can read, a link, another key and a damaged file are refused',
  async () => {
    const keys = new KeyDirectory(directory);
    const { kid } = await keys.signer('receipt');
    const file = join(directory, `${kid}.key`);
    for (const mode of [0o640, 0o604, 0o620, 0o610]) {
      chmodSync(file, mode);
      await expect(keys.signer('receipt'), mode.toString(8)).rejects.toMatchObject({ code: 'KEYS_UNUSABLE' });
    }
    chmodSync(file, 0o600);
    const seed = readFileSync(file, 'utf8');
    for (const content of ['', seed.trim(), `${seed}\n`, `${SEED}\n`, 'x'.repeat(500)]) {
      writeFileSync(file, content);
      await expect(keys.signer('receipt'), content).rejects.toMatchObject({ code: 'KEYS_UNUSABLE' });
    }
    rmSync(file);
    await expect(keys.signer('receipt')).rejects.toThrow('cannot be opened');
    writeFileSync(join(directory, 'elsewhere'), seed, { mode: 0o600 });
    symlinkSync(join(directory, 'elsewhere'), file);
    await expect(keys.signer('receipt')).rejects.toMatchObject({ code: 'KEYS_UNUSABLE' });
    writeFileSync(join(directory, 'keys.json'), '{"keys":[],"keys":[]}');
    await expect(keys.list()).rejects.toThrow('occurs twice');
  },
);

verifies(
  'receipt.key-files',
  'a new key is valid from an index of the log on, and the replaced one a little longer',
  async () => {
    const keys = new KeyDirectory(directory);
    const old = await keys.signer('receipt');
    const { kid, from } = await keys.rotate('receipt', 7);
    expect(from).toBe(7);
    expect((await keys.signer('receipt')).kid).toBe(kid);
    const trusted = new TrustedKeys((await keys.list()).keys);
    expect([6, 7, 10_007].map((i) => typeof trusted.forReceipt(old.kid, i))).toEqual(['object', 'object', 'string']);
    expect([6, 7].map((i) => typeof trusted.forReceipt(kid, i))).toEqual(['string', 'object']);
    expect(trusted.forReceipt(kid, undefined)).toBe('key_needs_log_proof');
    await expect(keys.rotate('receipt', 3)).rejects.toMatchObject({ code: 'KEYS_UNUSABLE' });
  },
);

verifies('receipt.key-files', 'a revoked key signs nothing more, and a revocation is never taken back', async () => {
  const keys = new KeyDirectory(directory);
  const { kid } = await keys.signer('receipt');
  expect(await keys.revoke(kid, 5)).toMatchObject({ kid, revoked: 5 });
  expect(await keys.revoke(kid, 9)).toMatchObject({ revoked: 5 });
  expect(await keys.revoke(kid, true)).toMatchObject({ revoked: true });
  expect(await keys.revoke(kid, 5)).toMatchObject({ revoked: true });
  expect((await keys.signer('receipt')).kid).not.toBe(kid);
  await expect(keys.revoke('unknown', true)).rejects.toMatchObject({ code: 'KEYS_UNUSABLE' });
});

verifies(
  'receipt.key-files',
  'keys that are moved away or replaced while a process runs are not made anew',
  async () => {
    const path = join(directory, 'keys');
    const keys = new KeyDirectory(path);
    const { kid } = await keys.signer('receipt');
    const lengths = new StreamLengths(join(path, 'journal.db.lengths'), keys.pinned);
    const checkpoint = new CheckpointFile(join(path, 'journal.db.checkpoint'), keys.pinned);
    const refused = async (): Promise<void> => {
      for (const use of [
        () => keys.signer('receipt'),
        () => keys.rotate('receipt', 7),
        () => lengths.write('log', 1),
        () => checkpoint.write('rondo/x\n1\nroot\n'),
      ])
        await expect(use()).rejects.toMatchObject({ code: 'KEYS_UNUSABLE' });
    };
    const kept = `${path}.kept`;
    renameSync(path, kept);
    await refused();
    expect(existsSync(path), 'the directory of another store was written').toBe(false);
    await new KeyDirectory(path).signer('receipt');
    await refused();
    rmSync(path, { recursive: true });
    renameSync(kept, path);
    expect((await keys.signer('receipt')).kid).toBe(kid);
    rmSync(join(path, 'keys.json'));
    await expect(keys.signer('receipt')).rejects.toThrow('was removed');
  },
);

verifies('receipt.key-files', 'a key that the disk does not confirm is refused with a code', async () => {
  const file = await open(join(directory, 'probe'), 'w');
  const sync = vi.spyOn(Object.getPrototypeOf(file), 'sync');
  await file.close();
  sync.mockRejectedValue(Object.assign(new Error('EIO: i/o error, fsync'), { code: 'EIO' }));
  const writes = [
    () => new KeyDirectory(directory).signer('receipt'),
    () => new CheckpointFile(join(directory, 'journal.db.checkpoint')).write('rondo/x\n1\nroot\n'),
  ];
  try {
    for (const write of writes)
      await expect(write()).rejects.toMatchObject({ code: 'KEYS_UNUSABLE', message: expect.stringContaining('EIO') });
  } finally {
    sync.mockRestore();
  }
  for (const write of writes) await write();
});

verifies('receipt.key-files', 'keys that a full disk keeps from being made are asked for again later', async () => {
  const file = await open(join(directory, 'probe'), 'w');
  const write = vi.spyOn(Object.getPrototypeOf(file), 'writeFile');
  await file.close();
  const place = join(directory, 'keys');
  try {
    // The first write is that of the lock, the second one that of a key.
    for (const code of ['ENOSPC', 'EDQUOT'])
      for (const skipped of [0, 1]) {
        write.mockReset();
        if (skipped === 0) write.mockRejectedValueOnce(Object.assign(new Error(`${code}: no space`), { code }));
        else {
          write.mockResolvedValueOnce(undefined);
          write.mockRejectedValueOnce(Object.assign(new Error(`${code}: no space`), { code }));
        }
        await expect(new KeyDirectory(place).signer('receipt')).rejects.toMatchObject({
          code: 'STORE_FULL',
          message: expect.stringContaining('Free some disk space'),
        });
        expect(readdirSync(place), 'what a failed write leaves delays the next process').toEqual([]);
      }
  } finally {
    write.mockRestore();
  }
  await new KeyDirectory(place).signer('receipt');
});

verifies('receipt.key-files', 'keys that this user may not read are a problem of permissions', async () => {
  await new KeyDirectory(directory).signer('receipt');
  const refused = withoutAccess(directory, () => new KeyDirectory(join(directory, 'keys')).signer('receipt'));
  await expect(refused).rejects.toMatchObject({
    code: 'KEYS_UNUSABLE',
    message: expect.stringMatching(/cannot be read by this user \(EACCES\)\. Make it .* chmod 600/),
  });
});

verifies('receipt.key-files', 'a lock of a process that has ended is taken over', async () => {
  const ended = execFile(process.execPath, ['-e', '']);
  await new Promise((resolve) => ended.once('exit', resolve));
  writeFileSync(join(directory, 'keys.lock'), `${ended.pid}`);
  await new KeyDirectory(directory).signer('receipt');
  expect(readdirSync(directory)).not.toContain('keys.lock');
});

verifies('receipt.key-files', 'the variables of runx describe a signer together, and in part nothing', async () => {
  const [kid, seed, type] = [
    'RUNX_RECEIPT_SIGN_KID',
    'RUNX_RECEIPT_SIGN_ED25519_SEED_BASE64',
    'RUNX_RECEIPT_SIGN_ISSUER_TYPE',
  ] as const;
  const all = { [kid]: 'runx-demo-key', [seed]: SEED, [type]: 'hosted' };
  expect(signerFromEnv({})).toBeUndefined();
  expect(signerFromEnv(all)).toMatchObject({ kid: 'runx-demo-key', issuerType: 'hosted' });
  for (const partial of [{ [kid]: 'k' }, { ...all, [type]: '' }, { ...all, [seed]: undefined }])
    expect(() => signerFromEnv(partial)).toThrow('not set');
  for (const wrong of [
    { ...all, [seed]: 'AAAA' },
    { ...all, [type]: 'local' },
    { ...all, [kid]: 'a b' },
  ])
    expect(() => signerFromEnv(wrong)).toThrow('must');
});

verifies(
  'receipt.key-origin',
  'only keys that were created in their directory by this user have a valid mark',
  async () => {
    const [created, secret] = [join(directory, 'keys'), join(directory, 'config', 'key-origin')];
    const origin = new KeyOrigin(created, secret);
    const listed = async (name = 'keys') => (await new KeyDirectory(join(directory, name)).list()).keys;
    await new KeyDirectory(created, undefined, origin).signer('receipt');
    expect(await origin.isMarked(await listed())).toBe(true);
    expect(statSync(secret).mode & 0o777).toBe(0o600);
    await new KeyDirectory(created, undefined, origin).rotate('receipt', 1);
    expect(await origin.isMarked(await listed())).toBe(true);
    const moved = join(directory, 'moved');
    cpSync(created, join(directory, 'copied'), { recursive: true });
    const own = await listed();
    renameSync(created, moved);
    expect(await new KeyOrigin(moved, secret).isMarked(own), 'the same directory under another name').toBe(true);
    const copied = new KeyOrigin(join(directory, 'copied'), secret);
    expect(await copied.isMarked(await listed('copied')), 'a copy').toBe(false);
    await new KeyDirectory(join(directory, 'copied'), undefined, copied).rotate('receipt', 2);
    expect(await copied.isMarked(await listed('copied')), 'a copy with a new key, which has the other keys too').toBe(
      false,
    );
    expect(await new KeyOrigin(moved, join(directory, 'other', 'key-origin')).isMarked(own), 'another user').toBe(
      false,
    );
    expect(await new KeyOrigin(join(directory, 'none'), secret).isMarked(own), 'no directory yet').toBe(false);
    await copied.mark(await listed('copied'));
    expect(await copied.isMarked(await listed('copied'))).toBe(true);
    for (const lost of ['', 'AAAA']) {
      writeFileSync(secret, lost);
      expect(await copied.isMarked(await listed('copied')), 'another secret').toBe(false);
    }
  },
);

verifies(
  'receipt.key-origin',
  'a mark does not vouch for keys that were unpacked over those that it is for',
  async () => {
    const [own, foreign] = [join(directory, 'keys'), join(directory, 'foreign')];
    const origin = new KeyOrigin(own, join(directory, 'config', 'key-origin'));
    const listed = async (): Promise<readonly TrustedKey[]> => (await new KeyDirectory(own).list()).keys;
    for (const [path, each] of [[own, origin] as const, [foreign, undefined] as const])
      await new KeyDirectory(path, undefined, each).signer('receipt');
    const before = await listed();
    cpSync(foreign, own, { recursive: true });
    expect(existsSync(join(own, 'origin'))).toBe(true);
    expect(await origin.isMarked(await listed()), 'foreign keys sign unnoticed').toBe(false);
    await new KeyDirectory(own, undefined, origin).rotate('receipt', 1);
    expect(await origin.isMarked(await listed()), 'a new key beside foreign ones').toBe(false);
    expect(await origin.isMarked([...before, ...(await listed())]), 'one foreign key').toBe(false);
    await new KeyDirectory(own, undefined, origin).accept();
    expect(await origin.isMarked(await listed())).toBe(true);
  },
);
