// Sandboxed commands that try to read, copy, list, connect to, move, remove or replace the contents of a data directory
// or a store.

import { execFileSync } from 'node:child_process';
import { linkSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, sleep } from '../../support/store-attack.mjs';
import { assertNotCopied, assertNotDisclosed, fingerprint, layouts, MARK, secretOf } from './layouts.mjs';

/** Command lines. $S is the database, $D its directory, $R the root and $P the pid of the host process. */
const commandLines = {
  cat: 'cat "$S"* "$D"/* "$D"/.* 2>/dev/null',
  find: 'find "$R" / -xdev \\( -name "journal*" -o -name kept.txt \\) 2>/dev/null; find "$D" -ls',
  grep: 'grep -ra -e Mk7 -e Kp9 "$R" / --exclude-dir=proc --exclude-dir=sys --exclude-dir=usr -s | head -c 3000',
  glob: 'cd "$R"; for f in .*/* */* */.*/* */*/*; do case "$f" in *journal*|*kept*) cat "$f";; esac; done',
  tar: 'cd "$R" && tar cf /tmp/t.tar . 2>/dev/null; strings -n 6 /tmp/t.tar 2>/dev/null | grep -e Mk7 -e Kp9; grep -ac kept.txt /tmp/t.tar; tar tf /tmp/t.tar | grep -e kept -e journal',
  'copy-out':
    'cp -a "$D" "$R/copied" 2>/dev/null; cp -aL "$R" /tmp/all 2>/dev/null; grep -ra -e Mk7 -e Kp9 /tmp/all "$R/copied"',
  'hard-link': 'ln "$S" "$R/h1"; ln "$D/kept.txt" "$R/h2"; cat "$R/h1" "$R/h2"',
  symlink: 'ln -s "$S" "$R/s1"; ln -s "$D" "$R/s2"; cat "$R/s1" "$R/s2"/*; ls -la "$R/s2/"',
  proc: 'for p in /proc/[0-9]* /proc/self /proc/thread-self; do cat "$p/root$S" "$p/cwd/$S" "$p/root$D/kept.txt"; ls -l $p/fd $p/map_files; done 2>/dev/null | head -c 5000',
  'dev-fd':
    'for n in $(seq 0 300); do [ -e /dev/fd/$n ] && ls -l /dev/fd/$n && timeout 1 cat "/dev/fd/$n/kept.txt" "/proc/self/fd/$n/journal.db"; done 2>/dev/null | head -c 3000',
  'remove-all': 'rm -rf "$R"/* "$R"/.[a-z]* "$D"',
  'remove-root': 'cd /; rm -rf --no-preserve-root "$R"; rmdir "$D"; unlink "$S"',
  'git-clean':
    'cd "$R" && export HOME=/tmp && git init -q . 2>/dev/null && git add -Af . 2>/dev/null; git ls-files | grep -e kept -e journal; git clean -ffdxq; git grep -a -e Mk7 -e Kp9',
  truncate:
    'for f in "$S" "$S-wal" "$S.owner" "$D/kept.txt" "$D/.rondo-data"; do : > "$f"; truncate -s 0 "$f"; done 2>&1',
  append: 'echo x >> "$S"; echo x >> "$D/kept.txt"; dd if=/dev/zero of="$S" bs=1 count=9 conv=notrunc 2>&1',
  plant:
    'echo planted > "$D/planted"; mkdir "$D/dir"; mkfifo "$D/pipe"; touch "$S-journal" "$S.anchor.new"; ln -s /etc/passwd "$D/link"',
  move: 'mv "$D" "$R/elsewhere"; mv "$S" "$R/j"; ls -la "$R/elsewhere"; cat "$R/elsewhere"/*',
  'move-parents':
    'd="$D"; while [ "$d" != "$R" ] && [ "$d" != / ]; do mv "$d" "$d.moved"; d=$(dirname "$d"); done; mv "$R" "$R.moved"; find "$R" -name kept.txt -o -name "journal.db*"',
  exchange: `python3 -c "
import ctypes, os, sys
c = ctypes.CDLL(None, use_errno=True)
os.makedirs(sys.argv[2] + '/mine', exist_ok=True)
for a in (sys.argv[1], os.path.dirname(sys.argv[1])):
    print(c.renameat2(-100, a.encode(), -100, (sys.argv[2] + '/mine').encode(), 2), os.strerror(ctypes.get_errno()))
" "$D" "$R"; cat "$R/mine"/*`,
  chmod:
    'chmod -R 777 "$D" "$S"; chown -R 65534 "$D"; chmod 777 "$R"; touch -d 2001-01-01 "$D" "$S"; setfattr -n user.x -v 1 "$S"',
  'replace-directory': 'rmdir "$D"; rm -rf "$D"; mkdir "$D"; echo planted > "$D/kept.txt"; ln -sfn /tmp "$D"',
  unmount: 'umount "$D"; umount -l "$D"; umount -f "$D"; cat "$D/kept.txt" "$S"',
  remount:
    'mount -o remount,rw "$D"; mount --bind "$R" /tmp; cat "/tmp/kept.txt"; mount -t overlay -o "lowerdir=$R" o /tmp; find /tmp',
  inotify: `python3 -c "
import ctypes, os, sys
c = ctypes.CDLL(None, use_errno=True)
fd = c.inotify_init1(2048)
print(c.inotify_add_watch(fd, sys.argv[1].encode(), 0xfff), c.inotify_add_watch(fd, sys.argv[2].encode(), 0xfff))
import time; time.sleep(1)
try: print('saw', os.read(fd, 4096))
except OSError as e: print(e)
" "$D" "$S"`,
  handle: `python3 -c "
import ctypes, os, sys, struct
c = ctypes.CDLL(None, use_errno=True)
m = ctypes.c_int()
h = ctypes.create_string_buffer(struct.pack('Ii', 128, 0) + bytes(128), 136)
r = c.name_to_handle_at(-100, sys.argv[2].encode(), h, ctypes.byref(m), 0)
fd = c.open_by_handle_at(os.open(sys.argv[2], os.O_RDONLY), h, os.O_RDONLY)
print(r, fd, os.strerror(ctypes.get_errno()))
if fd >= 0: print(os.listdir(fd))
" "$D" "$R"`,
  connect: `python3 -c "
import socket, sys, glob, os
for path in [sys.argv[1] + '.sock'] + [l.split()[-1] for l in open('/proc/net/unix').readlines()[1:] if len(l.split()) > 7]:
    s = socket.socket(socket.AF_UNIX); s.settimeout(1)
    try:
        s.connect(path.replace('@', chr(0), 1) if path.startswith('@') else path); print('CONNECTED', path, s.recv(200))
    except Exception as e: print(path, e)
" "$S"`,
  signal: 'kill -STOP $P; kill -9 $P; kill -9 -1; kill -TERM $PPID; echo sent',
  'nested-namespace': `python3 -c "
import ctypes, os, sys
c = ctypes.CDLL(None, use_errno=True)
d, r = sys.argv[1].encode(), sys.argv[2].encode()
say = lambda what, got: print(what, got, os.strerror(ctypes.get_errno()) if got < 0 else '')
say('unshare', c.unshare(0x10000000 | 0x20000))
for what, got in (('umount', lambda: c.umount2(d, 2)), ('bind', lambda: c.mount(r, b'/tmp', None, 4096, None)),
                  ('rbind', lambda: c.mount(r, b'/tmp', None, 4096 | 16384, None)), ('umount in copy', lambda: c.umount2(b'/tmp' + d[len(r):], 2)),
                  ('remount', lambda: c.mount(None, d, None, 32, None)), ('move', lambda: c.mount(d, b'/tmp', None, 8192, None)),
                  ('overlay', lambda: c.mount(b'o', b'/dev/shm', b'overlay', 0, b'lowerdir=' + r)), ('private', lambda: c.mount(None, b'/', None, 0x40000 | 16384, None)),
                  ('open_tree', lambda: c.syscall(428, -100, r, 1)), ('rename', lambda: c.rename(d, r + b'/moved'))):
    say(what, got())
os.system('cat /tmp/kept.txt /tmp/*/kept.txt /dev/shm/*/kept.txt /dev/shm/kept.txt \\"' + sys.argv[1] + '\\"/* ' + sys.argv[2] + '/moved/* 2>/dev/null')
" "$D" "$R"`,
  ptrace: `python3 -c "
import ctypes, os
c = ctypes.CDLL(None, use_errno=True)
for pid in [1, $P] + [int(p) for p in os.listdir('/proc') if p.isdigit()]:
    print(pid, c.ptrace(16, pid, 0, 0), os.strerror(ctypes.get_errno()))
    try: print(open('/proc/%d/environ' % pid).read().replace(chr(0), ' ')[:300])
    except OSError as e: print(e)
"`,
};

/**
 * Functions that prepare the root before the command, for example with a link to the data directory, and return the
 * command line.
 */
const preparations = {
  'earlier-hard-link': ({ root, directory, file, whole }) => {
    linkSync(whole ? join(directory, 'kept.txt') : file, join(root, 'hard'));
    return 'cat "$R/hard"; echo overwritten >> "$R/hard"';
  },
  'earlier-symlink': ({ root, directory }) => {
    symlinkSync(directory, join(root, 'soft'));
    return 'cat "$R/soft"/*; cp -aL "$R/soft" /tmp/x; ls -la "$R/soft/" /tmp/x; rm -rf "$R/soft/"*';
  },
  'earlier-bind': ({ root, directory, fixture }) => {
    mkdirSync(join(root, 'bound'));
    execFileSync('mount', ['--bind', directory, join(root, 'bound')]);
    fixture.atEnd(() => execFileSync('umount', ['-l', join(root, 'bound')]));
    return 'cat "$R/bound"/*; ls -la "$R/bound"; echo planted > "$R/bound/planted"';
  },
  'second-root': ({ root, roots }) => {
    roots.push(join(root, 'sub'));
    return 'cat "$S"* "$D"/*; mv "$D" "$R/sub/moved"; cat "$R/sub/moved"/*';
  },
  'beside-many': ({ root }) => {
    for (let n = 0; n < 300; n++) mkdirSync(join(root, `many/${n}`), { recursive: true });
    return 'find "$R" -name kept.txt -o -name "journal.db*"; cat "$D"/*';
  },
};

/** Lines of error messages, which repeat the path that the command used. */
const FAILURES = /^.*(No such file|Read-only|cannot |can't |failed to|denied|busy|not permitted).*$/gim;

const shellQuote = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** Runs one command in one layout. It discloses, copies and changes nothing of the data directory. */
async function checkCommand(fixture, layoutName, line, prepare) {
  const layout = { ...(await layouts[layoutName](fixture)), fixture };
  const text = prepare === undefined ? line : prepare(layout);
  const known = prepare === undefined ? [] : [join(layout.root, 'hard'), join(layout.root, 'bound')];
  const secret = secretOf(layout);
  const before = fingerprint(layout);
  const { root, directory, file, host, roots } = layout;
  const head = `S=${shellQuote(file)} D=${shellQuote(directory)} R=${shellQuote(root)} P=${host.pid}\n`;
  const response = await host.command(head + text, { roots, input: { timeoutSeconds: 30 } });
  const outputs = [response.ok?.output, response.ok?.streamed].map((text = '') => text.replace(FAILURES, ''));
  assertNotDisclosed(outputs.join('\n'), layout, secret);
  const { ok = {} } = response;
  expect(ok.sandboxed === true, 'a command that ran in the sandbox', response);
  expect(!/CONNECTED|saw b/.test(ok.output), 'no connection and no inotify event', ok.output);
  expect(fingerprint(layout) === before, 'an unchanged data directory', {
    before,
    after: fingerprint(layout),
    output: ok.output,
  });
  assertNotCopied(layout, known);
}

/** A command does not see a data directory that another process creates while the command runs. */
async function checkNewDirectory(fixture, directory) {
  const root = join(fixture.folder, 'w');
  mkdirSync(root);
  const host = await fixture.host();
  const running = host.command(`sleep 4; cat ${directory}/kept.txt ${directory}/journal.db; ls -la ${directory}`, {
    roots: [root],
  });
  await sleep(1000);
  fixture.toolLoop('e', 'builtin:echo');
  const run = await fixture.cli([
    'run',
    'e',
    '--data',
    join(root, directory),
    '--input',
    JSON.stringify({ message: MARK }),
  ]);
  expect(run.code === 0, 'the run to succeed', run);
  writeFileSync(join(root, directory, 'kept.txt'), MARK);
  const { ok } = await running;
  assertNotDisclosed(ok.output.replace(FAILURES, ''), { file: join(root, directory) });
}

/** Command lines that create files with the names of a marker or of a store. */
const falseMarkers = {
  'marker-in-root': 'touch "$R/.rondo-data"',
  'marker-below': 'touch "$R/sub/.rondo-data"',
  'false-anchor': 'touch "$R/sub/seen.txt.anchor"',
  'false-owner': 'touch "$R/sub/seen.txt.owner"',
};

/** Such files do not hide the directory from the tools. */
async function checkStillVisible(fixture, line) {
  const root = fixture.file('w/sub/seen.txt', 'to be seen\n').replace('/sub/seen.txt', '');
  const host = await fixture.host();
  await host.command(`R='${root}'\n${line}`, { roots: [root] });
  for (const [tool, input] of [
    ['view_file', { path: 'sub/seen.txt' }],
    ['list_files', { path: '.', depth: 3 }],
    ['search_files', { query: 'to be seen' }],
    ['run_command', { command: 'cat sub/seen.txt && echo seen.txt && touch sub/new.txt' }],
  ]) {
    const response = await host.tool(tool, input, { roots: [root] });
    expect(/seen\.txt/.test(JSON.stringify(response.ok ?? '')), `${tool} to find the file`, response);
    expect(response.ok.exitCode === undefined || response.ok.exitCode === 0, `${tool} to write a file`, response);
  }
}

/**
 * A command does not see a data directory in /usr, which every command may read. The host process has its own mount
 * namespace.
 */
async function checkSystemDirectory(fixture) {
  const directory = '/usr/local/share';
  const text = `mount -t tmpfs t ${directory} && mkdir ${directory}/.rondo && echo ${MARK} > ${directory}/.rondo/kept.txt && exec "$@"`;
  const host = await fixture.host({ as: ['unshare', '-m', 'sh', '-c', text, 'sh'] });
  const root = join(fixture.folder, 'w');
  mkdirSync(root);
  const { ok } = await host.command(`cat ${directory}/.rondo/kept.txt`, { roots: [root] });
  assertNotDisclosed(ok.output, { file: directory }, '', []);
}

export function cases() {
  const list = [];
  const add = (id, run) => list.push({ id: `data.command.${id}`, run });
  for (const layout of ['own', 'marked-deep', 'others-shared']) {
    for (const [name, line] of Object.entries(commandLines))
      add(`${layout}.${name}`, (fixture) => checkCommand(fixture, layout, line));
  }
  for (const layout of ['own', 'marked', 'own-shared', 'others'])
    for (const [name, prepare] of Object.entries(preparations))
      add(`${layout}.${name}`, (fixture) => checkCommand(fixture, layout, '', prepare));
  for (const layout of Object.keys(layouts)) {
    if (['own', 'marked-deep', 'others-shared'].includes(layout)) continue;
    for (const name of ['cat', 'move-parents', 'truncate', 'remove-all'])
      add(`${layout}.${name}`, (fixture) => checkCommand(fixture, layout, commandLines[name]));
  }
  for (const directory of ['.rondo', 'state', 'deep/er/.rondo']) {
    add(`appearing.${directory.replaceAll('/', '-')}`, (fixture) => checkNewDirectory(fixture, directory));
  }
  add('among-programs', checkSystemDirectory);
  for (const [name, line] of Object.entries(falseMarkers))
    add(`planted.${name}`, (fixture) => checkStillVisible(fixture, line));
  return list;
}
