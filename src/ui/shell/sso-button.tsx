// The single sign-on button, while it is enabled; knows no session.
import { Button, Divider } from "@mantine/core";
import { useStatus } from "../api/queries.ts";

/** The last page of a tab that was opened for sign-in. */
export const SIGNED_IN_PATH = "/ui/signed-in";

interface Props {
  /** Page to return to. */
  readonly back: string;
  /** Opens a new tab, because the current page must stay open. */
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
        // With an opener, the new tab can close itself.
        {...(inNewTab ? { target: "_blank", rel: "opener" } : {})}
        onClick={onClick}
      >
        {data.sso_label ?? "Single sign-on"}
      </Button>
    </>
  );
}
