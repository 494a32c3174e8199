// Metadata addresses, at which cloud providers serve credentials of the machine; resolves no name.
import { compileCidrs } from "./cidr.ts";

/**
 * RFC 3927 and RFC 4291 section 2.5.6: link-local addresses reach the provider itself, not an application. The last two
 * are those of AWS and Google outside of these networks.
 */
export const isMetadataAddress = compileCidrs([
  ...["169.254.0.0/16", "fe80::/10"],
  ...["fd00:ec2::/64", "fd20:ce::/64"],
]);
