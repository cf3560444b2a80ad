// Guards of signals over HTTP.

import { guardsOf, proveGuards } from './prove.js';
import { signalChecks, signalParts } from './signal-checks.js';

const guard = guardsOf(signalChecks);
const ID = 'hosted.signals';

proveGuards(signalParts, [
  guard(ID, 'a delivery with a wrong signature is not parsed and not delivered', 'authentic-before-parsed', 'never'),
  guard(ID, 'a signature covers the body', 'delivery-body-signed', { rewrite: [/\.update\(body\)/, ''] }),
  guard(ID, 'a signature of other bytes is no signature', 'delivery-signed', { rewrite: [/isSigned && /, ''] }),
  guard(ID, 'a signature of other bytes is no signature', 'signatures-compared', { value: 'true' }),
  guard(ID, 'a late delivery is refused', 'delivery-not-late', { rewrite: [/!\(.*\)/, 'false'] }),
  guard(ID, 'an early delivery is refused', 'delivery-not-early', { rewrite: [/!\(.*\)/, 'false'] }),
  guard(ID, 'a delivery id has no separator of signed parts or of headers', 'delivery-id-unambiguous', 'never'),
  guard(ID, 'the time of a delivery has one form', 'delivery-time-strict', 'never'),
  guard(ID, 'a delivery has a bounded number of signatures', 'signatures-bounded', 'never'),
  guard(ID, 'a header of signatures that occurs twice is refused', 'signature-header-strict', 'never'),
  guard(ID, 'a short secret is refused', 'signing-key-long-enough', 'never'),
  guard(ID, 'a public key is no secret', 'asymmetric-key-no-secret', 'never'),
  guard(ID, 'a signal that does not exist cannot be signed', 'signal-without-key-refused', 'never'),
  guard(ID, 'a signal without verification is refused', 'unverified-signal-refused', 'never'),
  guard(ID, 'an unknown method of verification is refused', 'signal-method-known', 'never'),
  guard(ID, 'a reference that names no variable is not looked up', 'secret-reference-checked', 'never'),
  guard(ID, 'a document cannot name a variable that is no secret', 'secret-variable-named-so', 'never'),
  guard(ID, 'two signals of a loop with one secret are refused', 'signal-secret-not-shared', 'never'),
  guard(ID, 'the document of another loop is not used', 'document-of-the-path', 'never'),
  guard(ID, 'an unusable secret is reported once', 'secret-problem-reported-once', 'never'),
  guard(ID, 'a request that is not JSON is refused', 'signal-is-json', 'drop'),
  guard(ID, 'a body is not read beyond its limit', 'request-body-bounded', 'never'),
  guard(ID, 'a longer path is another route', 'signal-route-exact', {
    rewrite: [/segments\.length !== 2 \|\| /, ''],
  }),
  guard(ID, 'a path with an invalid loop id is refused before it is looked up', 'signal-path-checked', 'never'),
  guard(ID, 'an internal error is not disclosed', 'internal-errors-not-disclosed', 'never'),
]);
