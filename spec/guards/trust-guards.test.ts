// Guards of the file that `rondo trust` writes.

import { guardsOf, proveGuards } from './prove.js';
import { trustChecks, trustParts } from './trust-checks.js';

const guard = guardsOf(trustChecks);

proveGuards(trustParts, [
  guard('authority.trust', 'trust.toml and its directory are private to their user', 'trust-file-private', {
    literal: ['0o600', '0o644'],
  }),
  guard('authority.trust', 'trust.toml and its directory are private to their user', 'trust-directory-private', {
    literal: ['0o700', '0o755'],
  }),
  guard('authority.trust', 'a planted draft does not redirect trust.toml', 'draft-created-exclusively', {
    rewrite: [/rmSync\([^;]*;([^;]*?)\w+\.O_EXCL \| /, '$1'],
  }),
  guard(
    'authority.trust',
    'a trust.toml that is a link stays a link, and its target is replaced',
    'linked-trust-file-kept',
    { take: 1 },
  ),
  guard('authority.trust', 'a failed write of trust.toml leaves no draft', 'failed-draft-removed', 'drop'),
  guard('authority.trust', 'a directory of any name is stored exactly', 'delete-character-escaped', {
    take: 'receiver',
  }),
  guard('authority.trust', 'trust.toml is not written into the project', 'trust-file-not-written-into-project', 'drop'),
  guard(
    'authority.trust',
    'trust.toml is not written into the project through a link',
    'links-into-project-resolved',
    'drop',
  ),
  guard(
    'authority.trust',
    'the home directory and the directories above it cannot be trusted',
    'directory-above-home-not-trusted',
    { rewrite: [/\w+\((\w+), (\w+)\)/, '$1 === $2'] },
  ),
  guard('authority.trust', 'the real path of a directory is stored', 'real-directory-remembered', { take: 0 }),
  guard(
    'authority.trust',
    'a stored directory that became a link is not trusted',
    'remembered-link-not-trusted',
    'drop',
  ),
]);
