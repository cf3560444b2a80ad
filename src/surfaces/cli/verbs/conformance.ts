/** `conformance`: holds this runtime against LSEM. */
import { suiteParts } from '../../compose.js';
import { UsageError } from '../../settings.js';
import { type Act, exit, textOf } from '../verb.js';

export const conformance: Act = async ({ options, terminal, json }) => {
  const [{ judge }, { renderConformance }, { rondoDriver }] = await Promise.all([
    import('../../../testing/conformance/judge.js'),
    import('../../../testing/conformance/render.js'),
    import('../../../testing/conformance/rondo.js'),
  ]);
  const only = textOf(options.only)
    ?.split(/[\s,]+/)
    .filter((id) => id !== '');
  const report = await judge(rondoDriver(await suiteParts()), only === undefined ? {} : { only }).catch((thrown) => {
    throw thrown instanceof TypeError ? new UsageError(thrown.message) : thrown;
  });
  if (json) await terminal.json(report);
  else await terminal.print(renderConformance(report, terminal.look()));
  const { conformant, failed } = report.summary;
  return (only === undefined ? conformant : failed === 0) ? exit.ok : exit.failed;
};
