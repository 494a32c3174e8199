CREATE TABLE `alerts` (
	`position` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`created_at` text NOT NULL,
	`updated_at` text NOT NULL,
	`document` text NOT NULL,
	`name` text NOT NULL
);

CREATE UNIQUE INDEX `alerts_id_unique` ON `alerts` (`id`);
CREATE UNIQUE INDEX `alerts_name_unique` ON `alerts` (`name`);