// Which addresses may use the management API; knows the settings and no HTTP.
import type { Settings } from "../model/settings.ts";
import { compileCidrs } from "../net/cidr.ts";

/** Returns the test for one address of a socket; an empty list of networks lets everybody in. */
export function createNetworkCheck(settings: () => Settings): (address: string) => boolean {
  let compiledFor: readonly string[] = [];
  let isListed: (address: string) => boolean = () => true;
  return (address) => {
    const { admin_allowed_cidrs: cidrs } = settings();
    if (cidrs !== compiledFor) {
      compiledFor = cidrs;
      isListed = compileCidrs(cidrs);
    }
    return cidrs.length === 0 || isListed(address);
  };
}
