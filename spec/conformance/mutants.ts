// The wrong runtimes: one for each check of a runtime, and more for checks with several sides.

import { wrongAgain } from './wrong-again.js';
import { wrongComposites } from './wrong-composites.js';
import { type Mutant, wrongDefinitions, wrongValidation } from './wrong-definitions.js';
import { wrongLifecycle, wrongTrace } from './wrong-events.js';

const first = {
  ...wrongDefinitions,
  ...wrongValidation,
  ...wrongLifecycle,
  ...wrongTrace,
  ...wrongComposites,
} as const;
const all = { ...first, ...wrongAgain } as const;

/** The id of the check that must fail, with a side of it where there are several. */
export type Wrong = keyof typeof all;

export const mutants: { readonly [W in Wrong]: Mutant } = all;
