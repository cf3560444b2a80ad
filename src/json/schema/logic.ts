/** The keywords that apply other schemas to the same value, including references. */
import type { Json } from '../../protocol/json.js';
import {
  assertionRule,
  type CompiledSchema,
  EvaluatedLocations,
  IssueReport,
  type KeywordCompiler,
  type KeywordContext,
  type SchemaCheck,
  type SchemaRule,
} from './rule.js';
import { spendStep } from './step-limit.js';

function compileBranches(context: KeywordContext, value: Json): CompiledSchema[] {
  return (value as readonly Json[]).map((schema) => context.compileInPlace(schema));
}

/**
 * True if a value is valid under a branch. Only then are the locations that the branch evaluated added to `evaluated`.
 */
function fitsBranch(rule: SchemaRule, value: unknown, evaluated: EvaluatedLocations | undefined): boolean {
  if (evaluated === undefined) return rule.check(value);
  const branchEvaluated = new EvaluatedLocations();
  if (!rule.check(value, branchEvaluated)) return false;
  evaluated.merge(branchEvaluated);
  return true;
}

const allOf: KeywordCompiler = (context, value) => {
  const rules = compileBranches(context, value);
  return {
    check: (part, evaluated) => {
      for (let i = 0; i < rules.length; i++) if (!(rules[i] as SchemaRule).check(part, evaluated)) return false;
      return true;
    },
    explain: (part, at, report) => {
      for (const rule of rules) if (!rule.check(part)) rule.explain(part, at, report);
    },
  };
};

/**
 * Returns the issues of the branch that was probably intended: the only one of the right type or, of several, the only
 * one with matching constants. Undefined if there is no such branch.
 */
function likelyBranchReport(rules: readonly SchemaRule[], value: unknown, at: string): IssueReport | undefined {
  const reports = rules.map((rule) => {
    const report = new IssueReport();
    rule.explain(value, at, report);
    return report;
  });
  const typeMatches = reports.filter(
    ({ issues }) => !issues.some(({ path, keyword }) => path === at && keyword === 'type'),
  );
  if (typeMatches.length === 1) return typeMatches[0];
  const constMatches = typeMatches.filter(({ issues }) => !issues.some(({ keyword }) => keyword === 'const'));
  return constMatches.length === 1 ? constMatches[0] : undefined;
}

function explainNoneFits(keyword: string, rules: readonly SchemaRule[]): SchemaRule['explain'] {
  return (value, at, report) => {
    const likely = likelyBranchReport(rules, value, at);
    if (likely === undefined) report.add(at, `must fit one of the ${rules.length} schemas of ${keyword}`, keyword);
    else for (const issue of likely.issues) report.add(issue.path, issue.message, issue.keyword);
  };
}

const anyOf: KeywordCompiler = (context, value) => {
  const rules = compileBranches(context, value);
  const check: SchemaCheck = (part, evaluated) => {
    if (evaluated === undefined) return rules.some((rule) => rule.check(part));
    return rules.filter((rule) => fitsBranch(rule, part, evaluated)).length > 0;
  };
  return { check, explain: explainNoneFits('anyOf', rules) };
};

const oneOf: KeywordCompiler = (context, value) => {
  const rules = compileBranches(context, value);
  const explainNone = explainNoneFits('oneOf', rules);
  return {
    check: (part, evaluated) => {
      let matches = 0;
      for (const rule of rules) if (fitsBranch(rule, part, evaluated) && ++matches > 1) return false;
      return matches === 1;
    },
    explain: (part, at, report) => {
      const matches = rules.filter((rule) => rule.check(part)).length;
      if (matches === 0) explainNone(part, at, report);
      else report.add(at, `must fit only one of the schemas of oneOf, and fits ${matches}`, 'oneOf');
    },
  };
};

const not: KeywordCompiler = (context, value) => {
  const rule = context.compileInPlace(value);
  return assertionRule('not', (part) => !rule.check(part), 'must not fit the schema of not');
};

const alwaysValid: SchemaRule = { check: () => true, explain: () => {} };

const ifKeyword: KeywordCompiler = (context, value) => {
  const rule = context.compileInPlace(value);
  const { then: thenSchema, else: elseSchema } = context.schema;
  const thenRule = thenSchema === undefined ? alwaysValid : context.compileInPlace(thenSchema);
  const elseRule = elseSchema === undefined ? alwaysValid : context.compileInPlace(elseSchema);
  return {
    check: (part, evaluated) => (fitsBranch(rule, part, evaluated) ? thenRule : elseRule).check(part, evaluated),
    explain: (part, at, report) => (rule.check(part) ? thenRule : elseRule).explain(part, at, report),
  };
};

/**
 * `$ref` and `$dynamicRef`. The target may be unfinished when this rule is compiled. Only references can make
 * validation exponential, so each one counts towards the step limit.
 */
function referenceKeyword(isDynamic: boolean): KeywordCompiler {
  return (context, value) => {
    const target = context.compileReference(value as string, isDynamic);
    return {
      check: (part, evaluated) => {
        spendStep();
        return target.check(part, evaluated);
      },
      explain: (part, at, report) => {
        spendStep();
        target.explain(part, at, report);
      },
    };
  };
}

/** The compilers of these keywords. `then` and `else` belong to `if`. */
export const logicKeywords: { readonly [keyword: string]: KeywordCompiler } = {
  $ref: referenceKeyword(false),
  $dynamicRef: referenceKeyword(true),
  allOf,
  anyOf,
  oneOf,
  not,
  if: ifKeyword,
};
