// Guards of the sandbox, of data directories and of secrets.

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { expect } from 'vitest';
import { probeSandbox } from '../../src/adapters/toolbox/sandbox.js';
import { verifies } from '../verifies.js';
import { guardsOf, proveGuards } from './prove.js';
import { sandboxChecks, sandboxParts } from './sandbox-checks.js';

const hasPerl = existsSync('/usr/bin/perl');
const isSandboxed = 'bubblewrap' in (await probeSandbox());
const canMount = process.getuid?.() === 0 && spawnSync('unshare', ['-m', 'true']).status === 0;

const guard = guardsOf(sandboxChecks);

const inProcess = [
  guard('toolbox.data', 'a tool cannot read a data directory that another process marked', 'marked-directory-is-data', {
    take: 1,
  }),
  guard('toolbox.data', 'a tool cannot read a data directory through a hard link', 'hard-links-searched', {
    value: 'false',
  }),
  guard(
    'toolbox.data',
    'a tool cannot read a data directory of another process through a hard link',
    'foreign-data-directories-searched',
    'drop',
  ),
  guard(
    'toolbox.confined',
    'a root behind a link that a command could have made is refused',
    'link-in-writable-directory-refused',
    'drop',
  ),
  guard(
    'toolbox.isolation',
    'a sandbox does not follow a symbolic link on the path to a root',
    'source-is-where-its-path-says',
    'drop',
  ),
  guard('secret.echo', 'the token of a header is redacted without its scheme', 'token-without-scheme-redacted', 'drop'),
  guard('secret.echo', 'a URL-encoded secret is redacted', 'url-escapes-decoded', 'never'),
  guard('secret.echo', 'a secret in line-wrapped Base64 is redacted', 'wrapped-base64-redacted', 'drop'),
  guard('secret.echo', 'a secret in nested encodings is redacted', 'nested-base64-decoded', 'always'),
];

const sandboxed = [
  guard('toolbox.data', 'a command cannot read a data directory in node_modules', 'every-directory-searched', {
    rewrite: [/\((const (\w+) of [^)]*)\)/, "($1) if ($2 !== 'node_modules')"],
  }),
  guard('toolbox.data', 'a command cannot read a data directory through a hard link', 'linked-names-hidden', 'always'),
  guard(
    'toolbox.isolation',
    'a command cannot read through an inherited descriptor',
    'inherited-descriptors-closed',
    'always',
  ),
  guard('toolbox.data', 'a command cannot read a data directory of another name', 'data-directories-covered', 'drop'),
  guard('toolbox.data', 'a command cannot move the parent of a data directory', 'parents-of-data-pinned', 'drop'),
  guard('toolbox.limits', 'a command cannot exceed its process limit', 'process-count-limited', 'drop'),
  guard('toolbox.limits', 'a command cannot exceed its memory limit', 'memory-limited', { take: 1 }),
  guard('toolbox.limits', 'a command cannot exceed its file size limit', 'file-size-limited', {
    literal: ['limit -f "$1"', ':'],
  }),
];

/** Their checks make system calls by number, which needs Perl. */
const ofSystemCalls = [
  guard('toolbox.isolation', 'a command cannot open a socket to the hypervisor', 'unknown-socket-families-denied', {
    value: '0x7fff0000',
  }),
  guard('toolbox.keyring', 'a command cannot use a kernel keyring', 'keyring-calls-denied', 'drop'),
];

/** Their checks mount something, which needs root. */
const ofMounts = [
  guard('toolbox.data', 'a command cannot read a data directory through a mount', 'mounted-names-searched', {
    value: '[]',
  }),
  guard('toolbox.data', 'a recently changed directory is read again, whatever its ctime', 'recent-listing-not-cached', {
    take: 1,
  }),
];

proveGuards(sandboxParts, inProcess);
if (isSandboxed) {
  proveGuards(sandboxParts, [...sandboxed, ...(hasPerl ? ofSystemCalls : []), ...(canMount ? ofMounts : [])]);
} else {
  verifies('toolbox.limits', 'the guards of the sandbox are proved where bubblewrap is available', (context) => {
    context.skip(!isSandboxed, 'needs bubblewrap');
    expect(isSandboxed).toBe(true);
  });
}
