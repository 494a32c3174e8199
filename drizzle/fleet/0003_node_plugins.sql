CREATE TABLE "sluice"."node_plugins" (
	"node" text PRIMARY KEY NOT NULL,
	"document" "bytea" NOT NULL,
	"mac" "bytea" NOT NULL
);
