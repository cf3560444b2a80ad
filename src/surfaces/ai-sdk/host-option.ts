/** The option `host` of the functions of this module. */

/** A runtime made with `createRondo`, or a host. */
export type HostOption<H extends object> = H | { readonly host: H };

/** Returns the host of a runtime, or the host itself. */
export function hostOf<H extends object>(option: HostOption<H>): H {
  return 'host' in option ? option.host : option;
}
