// Incorrect runtimes: one for each check of a runtime, and more for checks with several aspects.

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
const allMutants = { ...first, ...wrongAgain } as const;

/** The id of the check that must fail, with a suffix if there are several mutants for it. */
export type Wrong = keyof typeof allMutants;

/** The mutants by the check that must fail. */
export const mutants: { readonly [W in Wrong]: Mutant } = allMutants;
