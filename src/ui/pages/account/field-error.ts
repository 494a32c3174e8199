// Where in a small form a refusal of the API belongs; draws nothing.
import { ApiError } from "../../api/error.ts";

/** What `form.setErrors` takes, or null when the refusal belongs to no field of these. */
export function fieldErrorOf(error: unknown, values: object): Record<string, string> | null {
  if (!(error instanceof ApiError) || error.field === null || !(error.field in values)) return null;
  return { [error.field]: `${error.detail.charAt(0).toUpperCase()}${error.detail.slice(1)}` };
}
