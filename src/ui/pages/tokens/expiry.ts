// Whether a token has expired; renders nothing.
import type { Read } from "../../api/resources.ts";

/** Whether it has expired. */
export const isExpired = ({ expires_at: at }: Pick<Read<"tokens">, "expires_at">): boolean =>
  at !== null && Date.parse(at) <= Date.now();
