/** The keywords that apply other schemas to the same value, and the references. */
import type { Json } from '../../protocol/json.js';
import { spend } from './fuel.js';
import { assertion, type Check, type Compiled, type Maker, Report, type Rule, Seen } from './rule.js';

function branches(site: { here(schema: Json): Compiled }, value: Json): Compiled[] {
  return (value as readonly Json[]).map((schema) => site.here(schema));
}

/** Whether a branch fits; what it has seen counts only then. */
function fits(rule: Rule, value: unknown, seen: Seen | undefined): boolean {
  if (seen === undefined) return rule.check(value);
  const own = new Seen();
  if (!rule.check(value, own)) return false;
  seen.add(own);
  return true;
}

const allOf: Maker = (site, value) => {
  const rules = branches(site, value);
  return {
    check: (part, seen) => {
      for (let i = 0; i < rules.length; i++) if (!(rules[i] as Rule).check(part, seen)) return false;
      return true;
    },
    explain: (part, at, report) => {
      for (const rule of rules) if (!rule.check(part)) rule.explain(part, at, report);
    },
  };
};

/** The flaws of the one branch that was meant: the only one of the right type, or the only one whose constants fit. */
function meant(rules: readonly Rule[], value: unknown, at: string): Report | undefined {
  const reports = rules.map((rule) => {
    const report = new Report();
    rule.explain(value, at, report);
    return report;
  });
  const typed = reports.filter(({ flaws }) => !flaws.some(({ path, keyword }) => path === at && keyword === 'type'));
  if (typed.length === 1) return typed[0];
  const named = typed.filter(({ flaws }) => !flaws.some(({ keyword }) => keyword === 'const'));
  return named.length === 1 ? named[0] : undefined;
}

function noneFits(keyword: string, rules: readonly Rule[]): Rule['explain'] {
  return (value, at, report) => {
    const only = meant(rules, value, at);
    if (only === undefined) report.add(at, `must fit one of the ${rules.length} schemas of ${keyword}`, keyword);
    else for (const { path, message, keyword: word } of only.flaws) report.add(path, message, word);
  };
}

const anyOf: Maker = (site, value) => {
  const rules = branches(site, value);
  const check: Check = (part, seen) => {
    if (seen === undefined) return rules.some((rule) => rule.check(part));
    return rules.filter((rule) => fits(rule, part, seen)).length > 0;
  };
  return { check, explain: noneFits('anyOf', rules) };
};

const oneOf: Maker = (site, value) => {
  const rules = branches(site, value);
  const explainNone = noneFits('oneOf', rules);
  return {
    check: (part, seen) => {
      let found = 0;
      for (const rule of rules) if (fits(rule, part, seen) && ++found > 1) return false;
      return found === 1;
    },
    explain: (part, at, report) => {
      const found = rules.filter((rule) => rule.check(part)).length;
      if (found === 0) explainNone(part, at, report);
      else report.add(at, `must fit only one of the schemas of oneOf, and fits ${found}`, 'oneOf');
    },
  };
};

const not: Maker = (site, value) => {
  const rule = site.here(value);
  return assertion('not', (part) => !rule.check(part), 'must not fit the schema of not');
};

const yes: Rule = { check: () => true, explain: () => {} };

const conditional: Maker = (site, value) => {
  const rule = site.here(value);
  const { then: onTrue, else: onFalse } = site.schema;
  const positive = onTrue === undefined ? yes : site.here(onTrue);
  const negative = onFalse === undefined ? yes : site.here(onFalse);
  return {
    check: (part, seen) => (fits(rule, part, seen) ? positive : negative).check(part, seen),
    explain: (part, at, report) => (rule.check(part) ? positive : negative).explain(part, at, report),
  };
};

/** A reference may lead to a schema that is not finished yet, and is what can make checking long: so it costs. */
function reference(dynamic: boolean): Maker {
  return (site, value) => {
    const target = site.refer(value as string, dynamic);
    return {
      check: (part, seen) => {
        spend();
        return target.check(part, seen);
      },
      explain: (part, at, report) => {
        spend();
        target.explain(part, at, report);
      },
    };
  };
}

export const logic: { readonly [keyword: string]: Maker } = {
  $ref: reference(false),
  $dynamicRef: reference(true),
  allOf,
  anyOf,
  oneOf,
  not,
  if: conditional,
};
