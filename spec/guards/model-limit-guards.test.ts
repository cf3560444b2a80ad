// Guards of what bounds a model call: the tokens that are counted, and the time that it may take.

import { modelLimitChecks, modelLimitParts } from './model-limit-checks.js';
import { guardsOf, proveGuards } from './prove.js';

const guard = guardsOf(modelLimitChecks);

proveGuards(modelLimitParts, [
  guard('grant.reported', 'a reply counts at least its words', 'too-few-tokens-not-believed', {
    value: 'reply.outputTokens',
  }),
  guard('grant.reported', 'a reply counts at least its pieces', 'counted-pieces-charged', {
    rewrite: [/Math\.max\(outputTokens, .*? \?\? 0\)/, 'outputTokens'],
  }),
  guard('grant.reported', 'a piece that is no part of the reply is counted', 'unused-pieces-metered', 'drop'),
  guard('grant.interrupt', 'a silent model is interrupted', 'silent-model-interrupted', 'drop'),
  guard('grant.interrupt', 'a silent model times out', 'silent-model-times-out', { value: 'undefined' }),
]);
