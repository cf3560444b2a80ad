/** The keywords that apply other schemas to the same value, and the references. */
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

function compileBranches(site: KeywordContext, value: Json): CompiledSchema[] {
  return (value as readonly Json[]).map((schema) => site.compileInPlace(schema));
}

/** Whether a branch fits; what it has seen counts only then. */
function fitsBranch(rule: SchemaRule, value: unknown, seen: EvaluatedLocations | undefined): boolean {
  if (seen === undefined) return rule.check(value);
  const own = new EvaluatedLocations();
  if (!rule.check(value, own)) return false;
  seen.merge(own);
  return true;
}

const allOf: KeywordCompiler = (site, value) => {
  const rules = compileBranches(site, value);
  return {
    check: (part, seen) => {
      for (let i = 0; i < rules.length; i++) if (!(rules[i] as SchemaRule).check(part, seen)) return false;
      return true;
    },
    explain: (part, at, report) => {
      for (const rule of rules) if (!rule.check(part)) rule.explain(part, at, report);
    },
  };
};

/** The flaws of the one branch that was meant: the only one of the right type, or the only one whose constants fit. */
function likelyBranchReport(rules: readonly SchemaRule[], value: unknown, at: string): IssueReport | undefined {
  const reports = rules.map((rule) => {
    const report = new IssueReport();
    rule.explain(value, at, report);
    return report;
  });
  const typed = reports.filter(({ issues }) => !issues.some(({ path, keyword }) => path === at && keyword === 'type'));
  if (typed.length === 1) return typed[0];
  const named = typed.filter(({ issues }) => !issues.some(({ keyword }) => keyword === 'const'));
  return named.length === 1 ? named[0] : undefined;
}

function explainNoneFits(keyword: string, rules: readonly SchemaRule[]): SchemaRule['explain'] {
  return (value, at, report) => {
    const only = likelyBranchReport(rules, value, at);
    if (only === undefined) report.add(at, `must fit one of the ${rules.length} schemas of ${keyword}`, keyword);
    else for (const { path, message, keyword: word } of only.issues) report.add(path, message, word);
  };
}

const anyOf: KeywordCompiler = (site, value) => {
  const rules = compileBranches(site, value);
  const check: SchemaCheck = (part, seen) => {
    if (seen === undefined) return rules.some((rule) => rule.check(part));
    return rules.filter((rule) => fitsBranch(rule, part, seen)).length > 0;
  };
  return { check, explain: explainNoneFits('anyOf', rules) };
};

const oneOf: KeywordCompiler = (site, value) => {
  const rules = compileBranches(site, value);
  const explainNone = explainNoneFits('oneOf', rules);
  return {
    check: (part, seen) => {
      let found = 0;
      for (const rule of rules) if (fitsBranch(rule, part, seen) && ++found > 1) return false;
      return found === 1;
    },
    explain: (part, at, report) => {
      const found = rules.filter((rule) => rule.check(part)).length;
      if (found === 0) explainNone(part, at, report);
      else report.add(at, `must fit only one of the schemas of oneOf, and fits ${found}`, 'oneOf');
    },
  };
};

const not: KeywordCompiler = (site, value) => {
  const rule = site.compileInPlace(value);
  return assertionRule('not', (part) => !rule.check(part), 'must not fit the schema of not');
};

const alwaysValid: SchemaRule = { check: () => true, explain: () => {} };

const ifKeyword: KeywordCompiler = (site, value) => {
  const rule = site.compileInPlace(value);
  const { then: onTrue, else: onFalse } = site.schema;
  const positive = onTrue === undefined ? alwaysValid : site.compileInPlace(onTrue);
  const negative = onFalse === undefined ? alwaysValid : site.compileInPlace(onFalse);
  return {
    check: (part, seen) => (fitsBranch(rule, part, seen) ? positive : negative).check(part, seen),
    explain: (part, at, report) => (rule.check(part) ? positive : negative).explain(part, at, report),
  };
};

/** A reference may lead to a schema that is not finished yet, and is what can make checking long: so it costs. */
function referenceKeyword(dynamic: boolean): KeywordCompiler {
  return (site, value) => {
    const target = site.compileReference(value as string, dynamic);
    return {
      check: (part, seen) => {
        spendStep();
        return target.check(part, seen);
      },
      explain: (part, at, report) => {
        spendStep();
        target.explain(part, at, report);
      },
    };
  };
}

export const logicKeywords: { readonly [keyword: string]: KeywordCompiler } = {
  $ref: referenceKeyword(false),
  $dynamicRef: referenceKeyword(true),
  allOf,
  anyOf,
  oneOf,
  not,
  if: ifKeyword,
};
