// Guards of the operator's authority.

import { authorityChecks, compositionParts } from './authority-checks.js';
import { guardsOf, proveGuards } from './prove.js';

const guard = guardsOf(authorityChecks);

proveGuards(compositionParts, [
  guard('grant.prices', 'the prices of an untrusted project limit no remote model', 'untrusted-prices-limit-nothing', {
    value: 'priceOf(backendId, model, now)',
  }),
  guard('authority.trust', 'a trust.toml inside of a project is refused', 'trust-file-outside-project', 'always'),
  guard('authority.trust', 'a trust.toml that others can write is refused', 'trust-file-owned-by-user', 'drop'),
  guard(
    'authority.verbs',
    'listing an untrusted project imports none of its code',
    'untrusted-code-not-imported',
    'never',
  ),
  guard(
    'authority.calls',
    'a definition that is not trusted runs no trusted program',
    'untrusted-definition-runs-no-trusted-code',
    'never',
  ),
  guard(
    'authority.trust',
    'a journal cannot make its own definitions trusted',
    'journal-trust-needs-trusted-directory',
    { take: 0 },
  ),
  guard(
    'authority.trust',
    'a journal cannot make its own definitions trusted',
    'pinned-definition-is-the-current-one',
    { value: 'true' },
  ),
  guard(
    'authority.trust',
    'the journal of a clone continues nothing that needs trust',
    'journal-of-the-working-directory-needs-trust',
    'always',
  ),
  guard(
    'authority.paths',
    'an untrusted project cannot choose where files are written',
    'config-paths-confined',
    'drop',
  ),
  guard('authority.send', 'a definition sends only permitted variables in headers', 'header-variables-permitted', {
    value: 'undefined',
  }),
  guard(
    'authority.send',
    'a config sends a key variable only to permitted servers',
    'config-key-variable-permitted',
    'never',
  ),
  guard(
    'authority.send',
    'a definition sends only permitted variables as keys',
    'definition-key-variable-permitted',
    'never',
  ),
  guard('authority.send', 'no variable is sent in clear text', 'clear-text-needs-explicit-scheme', 'drop'),
  guard('authority.send', 'a request with a key follows no redirect', 'redirects-not-followed', { value: "'follow'" }),
  guard(
    'authority.reach',
    'a host name that resolves to a private address is not connected to',
    'every-resolved-address-public',
    'never',
  ),
  guard(
    'authority.reach',
    'a host name that resolves to a private address is not connected to',
    'untrusted-tool-reaches-public-only',
    { value: 'false' },
  ),
  guard('authority.reach', 'a private address is refused', 'private-address-refused', { value: 'undefined' }),
  guard(
    'authority.reach',
    'a trusted and an untrusted definition share no model client',
    'provider-cached-per-trust',
    'drop',
  ),
]);
