// The sign-in methods of a user: a section for the password and one for the second factor.
import { useRead } from "../../api/queries.ts";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { RowsSkeleton } from "../../parts/skeletons.tsx";
import { type Means, meansPath } from "./means.ts";
import { OwnPassword } from "./own-password.tsx";
import { SecondFactor } from "./second-factor.tsx";

export function SignInMeans({ userId }: { readonly userId: string }) {
  const means = useRead<Means>(meansPath(userId));
  if (means.data === undefined)
    return means.isPending ? (
      <RowsSkeleton />
    ) : (
      <ErrorPanel error={means.error} onRetry={() => means.refetch()} />
    );
  const { value } = means.data;
  return (
    <>
      <OwnPassword userId={userId} means={value} />
      <SecondFactor userId={userId} means={value} />
    </>
  );
}
