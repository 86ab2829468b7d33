from pathlib import Path

from setuptools import find_packages, setup

PACKAGE = "groot_ros"
HERE = Path(__file__).parent
PAGE_FILES = ("j2", "css", "js")


def requirements(*files: str) -> list[str]:
    lines = [line.strip() for file in files for line in (HERE / file).read_text().splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def executables() -> list[str]:
    """Every public module of groot_ros/cli is one executable of the same name."""
    modules = sorted(path.stem for path in (HERE / PACKAGE / "cli").glob("*.py") if not path.stem.startswith("_"))
    return [f"{name} = {PACKAGE}.cli.{name}:main" for name in modules]


def files(pattern: str) -> list[str]:
    return sorted(str(path.relative_to(HERE)) for path in HERE.glob(pattern))


setup(
    name=PACKAGE,
    version="0.1.0",
    description="Run NVIDIA GR00T N1.7 policies on ROS 2 robots",
    license="Apache-2.0",
    author="The groot_ros developers",
    author_email="maintainers@groot-ros.example",
    packages=find_packages(include=[PACKAGE, f"{PACKAGE}.*"]),
    package_data={PACKAGE: ["py.typed", "dataset/quality/*.j2", *(f"evaluation/page/*.{end}" for end in PAGE_FILES)]},
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{PACKAGE}"]),
        (f"share/{PACKAGE}", ["package.xml"]),
        (f"share/{PACKAGE}/launch", files("launch/*.launch.py")),
        (f"share/{PACKAGE}/config", files("config/*.xml")),
        (f"share/{PACKAGE}/config/robots", files("config/robots/*.yaml")),
        (f"share/{PACKAGE}/config/training", files("config/training/*.yaml")),
        (f"share/{PACKAGE}/config/demo_checkpoint", files("config/demo_checkpoint/*.*")),
        (f"share/{PACKAGE}/config/demo_checkpoint/backbone", files("config/demo_checkpoint/backbone/*.*")),
    ],
    python_requires=">=3.10",
    install_requires=requirements("requirements.txt", "requirements/rosdep.txt"),
    extras_require={
        "test": requirements("requirements/test.txt"),
        "train": requirements("requirements/train.txt"),
    },
    zip_safe=False,
    entry_points={"console_scripts": executables()},
)
