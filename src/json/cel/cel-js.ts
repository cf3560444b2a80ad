/**
 * Loads the parser of the Common Expression Language (CEL) with the first expression, because most projects have none.
 * Only the parser is used: `evaluate.ts` evaluates, so that numbers are those of JSON and every evaluation is bounded.
 */
import { createRequire } from 'node:module';

type CelJs = typeof import('@marcbachmann/cel-js');

const requireModule = createRequire(import.meta.url);

/** The limits of the parser, which also bound every recursion over an expression. */
const limits = { maxAstNodes: 500, maxDepth: 50, maxListElements: 200, maxMapEntries: 200, maxCallArguments: 8 };

let loaded: { readonly environment: InstanceType<CelJs['Environment']> } | undefined;

/** Returns the environment that parses. */
export function celEnvironment(): InstanceType<CelJs['Environment']> {
  if (loaded === undefined) {
    const { Environment } = requireModule('@marcbachmann/cel-js') as CelJs;
    loaded = { environment: new Environment({ limits }) };
  }
  return loaded.environment;
}
