// Guards of the process that supervises a driver of the conformance suite.

import { driverChecks, driverParts } from './driver-checks.js';
import { guardsOf, proveGuards } from './prove.js';

const guard = guardsOf(driverChecks);

proveGuards(driverParts, [
  guard(
    'lsem.suite.driver',
    'a driver that ends its process fails only the current check',
    'lost-process-names-its-check',
    'drop',
  ),
  guard('lsem.suite.driver', 'a driver that ends its process fails only the current check', 'lost-check-fails', 'drop'),
  guard('lsem.suite.driver', 'results from before the loss of a process are kept', 'results-kept-as-they-come', 'drop'),
  guard(
    'lsem.suite.driver',
    'a driver that blocks its process fails one check, and the process is killed',
    'silence-timer-restarted',
    'drop',
  ),
  guard(
    'lsem.suite.driver',
    'a driver that blocks its process fails one check, and the process is killed',
    'settled-process-ended',
    'drop',
  ),
  guard(
    'lsem.suite.driver',
    'messages of a driver after its report do not delay the end',
    'messages-after-report-ignored',
    'drop',
  ),
  guard('lsem.suite.driver', 'the processes that a driver starts are killed with it', 'process-group-killed', {
    take: 0,
  }),
  guard('lsem.suite.driver', 'a driver that loses five processes is abandoned', 'lost-processes-bounded', {
    value: '6',
  }),
  guard('lsem.suite.driver', 'the stdout of a driver does not reach the report', 'driver-stdout-redirected', {
    value: '1',
  }),
]);
