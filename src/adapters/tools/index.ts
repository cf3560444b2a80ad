/** What can stand behind the `implementation` of a tool loop: our own, modules, executables, and HTTP endpoints. */
export { builtinTools } from './builtin.js';
export { type ExecOptions, execTools } from './exec.js';
export { type HttpOptions, httpsTools, httpTools } from './http.js';
export { moduleTools } from './module.js';
