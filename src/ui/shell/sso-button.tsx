// The button that leads to the identity provider, while single sign-on is on; knows no session.
import { Button, Divider } from "@mantine/core";
import { useStatus } from "../api/queries.ts";

/** Where a tab ends that was opened only to sign in. */
export const SIGNED_IN_PATH = "/ui/signed-in";

interface Props {
  /** Page of this gateway to come back to. */
  readonly back: string;
  /** In a tab of its own, because the page below must not be left. */
  readonly inNewTab?: boolean;
  readonly onClick?: () => void;
}

export function SsoButton({ back, inNewTab = false, onClick }: Props) {
  const { data } = useStatus();
  if (data?.sso_enabled !== true) return null;
  return (
    <>
      <Divider label="or" />
      <Button
        component="a"
        variant="default"
        href={`/api/v1/auth/sso/start?redirect=${encodeURIComponent(back)}`}
        // The opener lets the new tab close itself at the end.
        {...(inNewTab ? { target: "_blank", rel: "opener" } : {})}
        onClick={onClick}
      >
        {data.sso_label ?? "Single sign-on"}
      </Button>
    </>
  );
}
