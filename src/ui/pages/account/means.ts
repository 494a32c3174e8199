// The sign-in methods of a user, as the API returns them; renders nothing.
import type { Schemas } from "../../api/resources.ts";

export type Means = Schemas["SignInMeans"];

export interface MeansProps {
  readonly userId: string;
  readonly means: Means;
}

/** Below /api/v1; also the query key. */
export const meansPath = (userId: string): string => `users/${userId}/totp`;
