// Single sign-on with OpenID Connect: loads its settings and shows their form; knows no user.
import { useRead } from "../../api/queries.ts";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { FormSkeleton } from "../../parts/skeletons.tsx";
import { type Sso, SsoForm } from "./sso-form.tsx";

export default function SsoPage() {
  const sso = useRead<Sso>("sso");
  if (sso.data !== undefined) return <SsoForm source={sso.data} />;
  if (sso.isPending) return <FormSkeleton />;
  return (
    <ErrorPanel
      error={sso.error}
      title="Single sign-on cannot be shown"
      onRetry={() => sso.refetch()}
    />
  );
}
