// Maps an API error to a field of a small form; renders nothing.
import { ApiError } from "../../api/error.ts";

/** Errors for `form.setErrors`; null: the error concerns none of these fields. */
export function fieldErrorOf(error: unknown, values: object): Record<string, string> | null {
  if (!(error instanceof ApiError) || error.field === null || !(error.field in values)) return null;
  return { [error.field]: `${error.detail.charAt(0).toUpperCase()}${error.detail.slice(1)}` };
}
