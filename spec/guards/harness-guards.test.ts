// Guards of the harness: it never passes falsely, and a case touches nothing but its own store.

import { harnessChecks, harnessParts } from './harness-checks.js';
import { guardsOf, proveGuards } from './prove.js';

const guard = guardsOf(harnessChecks);

proveGuards(harnessParts, [
  guard('hosted.harness', 'a script replaces a model object', 'model-object-overridden', 'never'),
  guard('hosted.harness', 'a request without an expected text fails the case', 'scripted-expectation-checked', 'never'),
  guard('hosted.harness', 'a model without a script is not called', 'unscripted-model-not-called', {
    rewrite: [/\?\? listed/, '?? files'],
  }),
  guard('hosted.harness', 'unused steps of a script fail the case', 'script-used-completely', 'drop'),
  guard('hosted.harness', 'unused answers fail the case', 'answers-used-completely', 'drop'),
  guard('hosted.harness', 'a misspelt expectation is refused', 'harness-members-known', 'never'),
  guard('hosted.harness', 'definitions outside of the project are refused', 'harness-definitions-confined', 'never'),
  guard(
    'hosted.harness',
    'a harness that is not trusted runs no definitions of others that need trust',
    'untrusted-harness-runs-no-trusted-code',
    'always',
  ),
  guard('hosted.harness', 'a store that is not valid fails the case', 'store-of-case-verified', 'drop'),
  guard('hosted.harness', 'a case writes nothing into the project', 'case-has-its-own-store', 'drop'),
  guard(
    'hosted.harness',
    'a hosted loop that did not stop as expected fails the case',
    'hosted-case-needs-its-stop',
    'drop',
  ),
  guard(
    'hosted.harness',
    'unused steps of a script fail a case with a hosted loop',
    'hosted-script-used-completely',
    'drop',
  ),
  guard('hosted.harness', 'unused answers fail a case with a hosted loop', 'hosted-answers-used-completely', 'drop'),
  guard('hosted.harness', 'the steps of a case are bounded', 'steps-of-case-bounded', {
    rewrite: [/Math\.min\(steps, MAX_STEPS\)/, 'steps'],
  }),
  guard('hosted.harness', 'receipts are not written among other files', 'receipt-directory-empty', 'never'),
  guard('hosted.harness', 'a harness without cases does not pass', 'harness-without-cases-fails', {
    rewrite: [/reports\.length > 0 && /, ''],
  }),
]);
